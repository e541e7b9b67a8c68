"""What a rank does with its process, whatever its framework."""

import ctypes
import os
import resource
import signal


def abort_late():
    """Delay an abort of this process by six seconds, the number of that signal."""
    # Some frameworks abort a rank that loses another; launchers look only once a second.
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGABRT, libc.sleep)


def usable_cores():
    """The number of logical CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpus_of_node(root="/"):
    """The number of GPUs that NVIDIA's driver has on this node, whoever uses them; 0 without it."""
    folder = os.path.join(root, "proc/driver/nvidia/gpus")
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


def keep_to_own_cores(rank, threads):
    """Confine a CPU rank, its data loader included, to as many cores as it may use threads.

    So more ranks gain speed from more devices and not from idle cores. Call it before the first
    thread starts. Where there are too few cores for all ranks and parameter servers, as CORES says,
    all share all: two on the core of one would slow those two alone.
    """
    if hasattr(os, "sched_setaffinity") and os.environ.get("CORES") != "shared":
        cores = sorted(os.sched_getaffinity(0))
        own = {cores[core % len(cores)] for core in range(rank * threads, (rank + 1) * threads)}
        os.sched_setaffinity(0, own)


def processor(root="/"):
    """Who has made this machine's processor, and what it has: {"AuthenticAMD", "avx2", ..}."""
    try:
        with open(os.path.join(root, "proc/cpuinfo")) as stream:
            return set(stream.read().split())
    except OSError:  # not Linux
        return set()


def limit_memory(size):
    """Let this process, and those that it starts, take no more bytes of address space than that."""
    # Linux counts no other memory of a process against a limit.
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        size = min(size, most)
    resource.setrlimit(resource.RLIMIT_AS, (size, most))


def is_limited():
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def peak_memory():
    """The most memory of the machine that this process has used so far, in bytes."""
    # Under a limit, it is what the limit counts: address space.
    if is_limited():
        with open("/proc/self/status") as stream:
            for line in stream:
                if line.startswith("VmPeak:"):
                    return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
