"""A node's CPUs, memory and disks, and what else uses them."""

from collections.abc import Iterator
from functools import partial

from reperf.doctor.case import NOT_THERE, Case, Verdict, each, enough, same
from reperf.doctor.diagnosis import Finding, Probe
from reperf.printed import count, gibibytes

LEAST_SHARED_MEMORY = 2**30
"""Bytes of /dev/shm; containers have 64 MiB by default."""
SHOWN_PROCESSES = 3


def processors(case: Case) -> Iterator[Finding]:
    """CPUs of one kind, enough of them, at full clocks, and not used by others."""
    of_their_own = 1 if case.report.share_cpus else case.report.largest_shape[1]
    yield from same(case, "CPU", lambda probe: f"{probe.host.cores} x {probe.host.cpu}")
    yield from same(case, "system", lambda probe: f"{probe.host.os}, kernel {probe.host.kernel}")
    yield from enough(
        case,
        "CPUs for a run",
        lambda probe: probe.host.cores,
        least=of_their_own * case.report.threads_per_device,
        show=lambda cores: count(int(cores), "CPU"),
        level="error",
        advice="lower threads_per_device, or the devices per node of the topologies",
    )
    yield from each(case, "CPU governor", _judge_governor)
    yield from each(case, "CPU clock", _judge_clock)
    yield from each(case, "CPU quota", _judge_quota)
    yield from same(case, "kernel settings", _settings)
    yield from each(case, "other processes", _judge_company)


def _judge_governor(probe: Probe) -> Verdict:
    governors = probe.processor.governors
    if governors is None:
        return Verdict(NOT_THERE, "the kernel sets no clocks here (no cpufreq)")
    what = ", ".join(f"{name} on {count(cpus, 'CPU')}" for name, cpus in governors.items())
    if set(governors) == {"performance"}:
        return Verdict("ok", what)
    return Verdict("warning", what, "cpupower frequency-set --governor performance")


def _judge_clock(probe: Probe) -> Verdict:
    cpu = probe.processor
    allowed, possible = cpu.allowed_megahertz, cpu.possible_megahertz
    if cpu.megahertz is None or allowed is None or possible is None:
        return Verdict(NOT_THERE, "the kernel reports no clocks here (no cpufreq)")
    if allowed < possible:
        what = f"limited to {allowed} of {possible} MHz"
        return Verdict("warning", what, "raise scaling_max_freq")
    return Verdict("ok", f"up to {possible} MHz")


def _judge_quota(probe: Probe) -> Verdict:
    quota, cores = probe.processor.quota, probe.host.cores
    if quota is None:
        return Verdict("ok", "no limit by control groups")
    if quota < cores:
        advice = "a quota pauses threads at work: ask for a CPU set instead"
        return Verdict("warning", f"{quota:g} of {count(cores, 'CPU')}", advice)
    return Verdict("ok", f"{quota:g} of {count(cores, 'CPU')}")


def _settings(probe: Probe) -> str | None:
    return ", ".join(f"{name} {value}" for name, value in probe.processor.settings.items()) or None


def _judge_company(probe: Probe) -> Verdict:
    load, busy = f"load {probe.processor.load:.1f}", probe.processor.busy
    if busy:
        shown = [f"{one.name} ({one.pid}) {one.percent:.0f} %" for one in busy[:SHOWN_PROCESSES]]
        more = f" and {len(busy) - len(shown)} more" if len(busy) > len(shown) else ""
        return Verdict("warning", f"{', '.join(shown)}{more}; {load}", "end them first")
    if probe.processor.load > probe.host.cores / 2:
        advice = "something out of sight is running, or was in the last minute"
        return Verdict("warning", f"{load} on {count(probe.host.cores, 'CPU')}", advice)
    return Verdict("ok", "none busy")


def space(case: Case) -> Iterator[Finding]:
    """Room on the disk and in memory."""
    room = partial(enough, case, show=gibibytes)
    yield from room(
        "disk",
        lambda probe: probe.space.disk_free,
        least=case.needed_bytes,
        level="error",
        advice="make room in the work folder",
    )
    yield from each(case, "inodes", _judge_inodes)
    yield from room(
        "memory",
        lambda probe: probe.space.memory_available,
        least=max((probe.host.memory_bytes for probe in case.probes.values()), default=0) / 2,
        level="warning",
        advice="other processes hold the memory, or the node has less than the others",
    )
    yield from room(
        "shared memory",
        lambda probe: probe.space.shared_memory_free,
        least=LEAST_SHARED_MEMORY,
        level="warning",
        advice="NCCL and data loaders use /dev/shm: give it more",
    )
    yield from each(case, "swap", _judge_swap)


def _judge_inodes(probe: Probe) -> Verdict:
    free = probe.space.inodes_free
    if free is None:
        return Verdict(NOT_THERE, "the file system reports no limit")
    if not free:
        advice = "remove files from the work folder's disk"
        return Verdict("error", "no more files can be created", advice)
    return Verdict("ok", "files can be created")


def _judge_swap(probe: Probe) -> Verdict:
    used = probe.space.swap_used
    if used > probe.host.memory_bytes / 100:
        return Verdict("warning", f"{gibibytes(used)} in use", "swapped pages come back slowly")
    return Verdict("ok", "not in use")
