"""Keep a rank to the CPUs next to its GPU, and so to their memory.

What cannot be found out is left alone. torchrun's --numa-binding=node does the same, but older
images and other launchers lack it.
"""

import ctypes
import os
from pathlib import Path


def keep_near_gpu(ordinal, root="/"):
    """Restrict this process to its CPUs nearest to a GPU; `ordinal` is the GPU's number in CUDA.

    It returns the CPUs that it may use now, such as "0-31,64-95"; None if it cannot be said.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    address = pci_address(ordinal)
    return written(keep_to(cpus_near(address, root) if address else set()))


def keep_to(cpus):
    """Confine this process to those CPUs among its own, if any; returns those that it may use."""
    own = os.sched_getaffinity(0)
    wanted = own & cpus
    if not wanted or wanted == own:
        return own
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), wanted)
        except ProcessLookupError:  # it has ended
            continue
    return wanted


def pci_address(ordinal):
    """Where a GPU of this process is, such as "0000:3B:00.0"; None without a driver or that GPU."""
    return said_of_gpu("cuDeviceGetPCIBusId", ordinal)


def said_of_gpu(function, ordinal):
    """What a function of CUDA's writes of a GPU."""
    # It knows numbers, UUIDs, MIG's names and CUDA_DEVICE_ORDER.
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    number, said = ctypes.c_int(), ctypes.create_string_buffer(100)
    known = (
        cuda.cuInit(0) == 0
        and cuda.cuDeviceGet(ctypes.byref(number), ordinal) == 0
        and getattr(cuda, function)(said, len(said), number) == 0
    )
    return said.value.decode() if known else None


def cpus_near(address, root="/"):
    """The CPUs next to a device, by the kernel; none if it does not know."""
    domain, _, rest = address.lower().partition(":")
    folder = Path(root, "sys/bus/pci/devices", f"{int(domain, 16):04x}:{rest}")
    try:
        node = int((folder / "numa_node").read_text())
        listed = (folder / "local_cpulist").read_text()
        # Of a machine without such nodes, or one that hides them, the kernel lists all CPUs.
        return read(listed) if node >= 0 else set()
    except (OSError, ValueError):
        return set()


def read(cpulist):
    """The numbers in a list of the kernel's, such as "0-31,64-95"."""
    cpus = set()
    for part in filter(None, cpulist.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def written(cpus):
    parts = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)
