"""The checks of nodes, from what they reported to findings; no check asks a machine anything."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256

from reperf.config import Report
from reperf.doctor.survey import (
    NOT_THERE,
    Survey,
    Verdict,
    check_each,
    check_equal,
    check_reports,
    most_common,
)
from reperf.doctor.trial_checks import check_builds, check_trials
from reperf.printed import gibibytes
from reperf.records.diagnosis import Finding, Level, NodeReport, Probe
from reperf.text import count

CLOCKS_APART_SECONDS = 1.0


def _settings(probe: Probe) -> str:
    return ", ".join(f"{name} {value}" for name, value in probe.settings.items())


def _topology(probe: Probe) -> str | None:
    """A short name for what nvidia-smi topo -m printed, which results/doctor.json holds."""
    matrix = probe.host.topology_matrix
    return f"matrix {sha256(matrix.encode()).hexdigest()[:8]}" if matrix else None


def _ports(probe: Probe) -> str:
    rates = dict.fromkeys(probe.ports)
    return ", ".join(f"{probe.ports.count(rate)} x {rate:g} Gb/s" for rate in rates)


EQUAL: dict[str, Callable[[Probe], str | None]] = {
    "CPU": lambda probe: f"{probe.host.cores} x {probe.host.cpu}",
    "system": lambda probe: f"{probe.host.os}, kernel {probe.host.kernel}",
    "kernel settings": lambda probe: _settings(probe) or None,
    "GPU driver": lambda probe: (
        f"{probe.host.driver}, CUDA {probe.host.cuda}" if probe.host.driver else None
    ),
    "GPU topology": _topology,
    "InfiniBand": lambda probe: _ports(probe) or None,
}
"""What must be the same on all nodes."""
NODE_ADVICE = {
    "CPU governor": "cpupower frequency-set --governor performance",
    "CPU clock": "raise scaling_max_freq",
    "CPU quota": "a quota pauses threads at work: ask for a CPU set instead",
    "other processes": "end them first; a load without a busy process is over, or hidden from you",
    "memory": "other processes hold the memory",
    "shared memory": "NCCL and data loaders use /dev/shm: give it more",
}
"""Check of a reading of each node -> what to do where it is not fine."""
GPU_ADVICE = {
    "GPU clocks": "nvidia-smi --reset-applications-clocks",
    "GPU slowdown": "check its cooling and power supply",
    "GPU power limit": "raise it with nvidia-smi --power-limit",
    "GPU processes": "end these processes first",
    "GPU MIG": "a run needs whole GPUs",
}
"""The same of each GPU."""
SPOILING = ("GPU MIG",)
"""Checks whose readings are errors where they are not fine, not warnings."""


def check_answers(survey: Survey) -> Iterator[Finding]:
    """Every node that gets jobs answers, and there are enough of them for every run."""
    for report in survey.node_reports:
        if not report.offered:
            yield Verdict("warning", report.trouble).on("answer", report.node)
        elif report.probe is None:
            advice = "runs will be sent there: repair it or take it out of the partition"
            yield Verdict("error", report.trouble, advice).on("answer", report.node)
    if survey.probes:
        yield Verdict("ok", "answered").on("answer", *survey.probes)
    offered = sum(report.offered for report in survey.node_reports)
    wanted = survey.report.largest_shape[0]
    if offered < wanted:
        what = f"{count(offered, 'node')} can be used, runs ask for {wanted}"
        nodes = (report.node for report in survey.node_reports)
        yield Verdict("error", what).on("answer", *nodes)


def _judge_folder(report: NodeReport) -> Verdict:
    """Whether the node reads what the caller writes there, and the caller what the node writes."""
    unseen = "" if report.note_arrived else "the caller cannot see what it writes"
    if trouble := (report.probe and report.probe.shared_trouble) or unseen:
        return Verdict("error", trouble, "work in a folder that all nodes see at the same path")
    return Verdict("ok", "read and written")


def _judge_clock(report: NodeReport) -> Verdict:
    """Whether the node's clock agrees with this machine's, which looks at its files."""
    behind = report.clock_offset or 0.0
    if abs(behind) < CLOCKS_APART_SECONDS:
        return Verdict("ok", f"less than {CLOCKS_APART_SECONDS:g} s apart, transfer included")
    what = f"{abs(behind):.1f} s {'behind' if behind > 0 else 'ahead of'} this machine's"
    return Verdict("warning", what, "set the clocks by NTP: Snakemake compares the times of files")


def check_machines(survey: Survey) -> Iterator[Finding]:
    """Machines are alike, have room, run at full clocks, and are not used by others."""
    for check, value in EQUAL.items():
        yield from check_equal(survey, check, value)
    for check, advice in NODE_ADVICE.items():
        yield from check_each(survey, check, partial(_judge_node, check, advice))
    devices = 1 if survey.report.share_cpus else survey.report.largest_shape[1]
    judge_cpus = partial(_judge_cpus, devices * survey.report.threads_per_device)
    yield from check_each(survey, "CPUs for a run", judge_cpus)
    yield from check_each(survey, "disk", partial(_judge_disk, survey.needed_bytes))


def _judge_node(check: str, advice: str, probe: Probe) -> Verdict:
    reading = probe.readings.get(check)
    if reading is None:
        return Verdict(NOT_THERE, "not set, or not reported")
    return Verdict("ok", reading.what) if reading.fine else Verdict("warning", reading.what, advice)


def _judge_cpus(needed: int, probe: Probe) -> Verdict:
    if probe.host.cores >= needed:
        return Verdict("ok", f"at least {needed}")
    advice = "lower threads_per_device, or the devices per node of the topologies"
    return Verdict("error", f"{count(probe.host.cores, 'CPU')}; at least {needed} needed", advice)


def _judge_disk(needed: int, probe: Probe) -> Verdict:
    if probe.disk_free is None:
        return Verdict(NOT_THERE, "not seen")
    if probe.disk_free >= needed:
        return Verdict("ok", f"at least {gibibytes(needed)} free")
    what = f"{gibibytes(probe.disk_free)} free; at least {gibibytes(needed)} needed"
    return Verdict("error", what, "make room in the work folder")


def check_gpus(survey: Survey) -> Iterator[Finding]:
    """As many GPUs as runs ask for, of one kind, whole, fast and unused."""
    yield from check_each(survey, "GPUs", partial(_judge_number, survey.report.on("cuda")))
    yield from check_each(survey, "GPU kind", partial(_judge_kinds, most_common(survey, _kinds)))
    for check, advice in GPU_ADVICE.items():
        yield from check_each(survey, check, partial(_judge_gpus, check, advice))


def _judge_number(on_gpus: Report, probe: Probe) -> Verdict:
    there, wanted = len(probe.gpus), on_gpus.largest_shape[1]
    if on_gpus.suites and there < wanted:
        advice = "see what nvidia-smi says on the node"
        return Verdict("error", f"{there} seen, runs ask for {wanted}", advice)
    return Verdict("ok", f"{there} seen") if there else Verdict(NOT_THERE, "none, and none needed")


def _judge_kinds(usual: tuple[str, ...] | None, probe: Probe) -> Verdict:
    kinds = _kinds(probe)
    if len(kinds) > 1 or kinds != usual:
        what = f"{' and '.join(kinds) or 'none'}, elsewhere {' and '.join(usual or ()) or 'none'}"
        return Verdict("error", what, "a report needs GPUs of one kind")
    return Verdict("ok", kinds[0]) if kinds else Verdict(NOT_THERE, "no GPU")


def _kinds(probe: Probe) -> tuple[str, ...]:
    kinds = {f"{gpu.name}, {gibibytes(gpu.memory_bytes)}" for gpu in probe.host.gpus}
    return tuple(sorted(kinds))


def _judge_gpus(check: str, advice: str, probe: Probe) -> Verdict:
    """One verdict on all GPUs of a node: what is wrong with which, or what all are like."""
    readings = {number: gpu[check] for number, gpu in enumerate(probe.gpus) if check in gpu}
    wrong = [
        f"GPU {number} {reading.what}" for number, reading in readings.items() if not reading.fine
    ]
    if wrong:
        level: Level = "error" if check in SPOILING else "warning"
        return Verdict(level, "; ".join(wrong), advice)
    if not readings:
        return Verdict(NOT_THERE, "not reported" if probe.gpus else "no GPU")
    return Verdict("ok", ", ".join(dict.fromkeys(reading.what for reading in readings.values())))


CHECKS: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
    check_answers,
    partial(check_reports, check="work folder", judge=_judge_folder),
    partial(check_reports, check="clock", judge=_judge_clock),
    check_builds,
    check_machines,
    check_gpus,
    check_trials,
)


def find(survey: Survey) -> tuple[Finding, ...]:
    """The findings of all checks, in the order of the table."""
    return tuple(finding for check in CHECKS for finding in check(survey))
