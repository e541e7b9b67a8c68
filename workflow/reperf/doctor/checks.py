"""The checks of nodes, from what they reported to findings; no check asks a machine anything."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from operator import ge
from typing import Any, NamedTuple

from reperf.config import Report
from reperf.diagnosis import Finding, GpuState, Level, Probe
from reperf.doctor.survey import (
    NOT_THERE,
    Survey,
    Verdict,
    check_each,
    check_equal,
    check_minimum,
    most_common,
    share_findings,
)
from reperf.doctor.trial_checks import check_builds, check_trials
from reperf.printed import count, gibibytes

CLOCKS_APART_SECONDS = 1.0
LEAST_SHARED_MEMORY = 2**30
"""Bytes of /dev/shm; containers have 64 MiB by default."""
SHOWN_PROCESSES = 3


class Rule(NamedTuple):
    """A check of each node, or of each GPU, by itself."""

    check: str
    values: Callable[[Any], tuple[Any, ...]]
    """What decides, of a Probe or a GpuState; the check is left out where one of them is None."""
    is_fine: Callable[..., bool]
    show: str
    """How the values are shown, as a format string."""
    advice: str
    level: Level = "warning"

    def what(self, subject: Probe | GpuState) -> str | None:
        """The values as text; None if the node does not report them."""
        values = self.values(subject)
        return None if None in values else self.show.format(*values)

    def fails(self, subject: Probe | GpuState) -> bool:
        """Whether the values are there, and not fine."""
        values = self.values(subject)
        return None not in values and not self.is_fine(*values)

    def judge(self, probe: Probe) -> Verdict:
        """The verdict on a node."""
        what = self.what(probe)
        if what is None:
            return Verdict(NOT_THERE, "not set, or not reported")
        return Verdict(self.level, what, self.advice) if self.fails(probe) else Verdict("ok", what)

    def judge_gpus(self, probe: Probe) -> Verdict:
        """One verdict on all GPUs of a node: what is wrong with which, or what all are like."""
        wrong = [
            f"GPU {number} {self.what(gpu)}"
            for number, gpu in enumerate(probe.gpus)
            if self.fails(gpu)
        ]
        if wrong:
            return Verdict(self.level, "; ".join(wrong), self.advice)
        sound = dict.fromkeys(what for what in map(self.what, probe.gpus) if what)
        if not sound:
            return Verdict(NOT_THERE, "not reported" if probe.gpus else "no GPU")
        return Verdict("ok", ", ".join(sound))


def _settings(probe: Probe) -> str:
    return ", ".join(f"{name} {value}" for name, value in probe.processor.settings.items())


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


def _busy(probe: Probe) -> tuple[str, float, int]:
    busy = probe.processor.busy
    more = len(busy) - SHOWN_PROCESSES
    shown = [*busy[:SHOWN_PROCESSES], *([f"{more} more"] if more > 0 else [])]
    return ", ".join(shown) or "none", probe.processor.load, probe.host.cores


NODE_RULES = (
    Rule(
        "CPU governor",
        lambda probe: (probe.processor.governor,),
        lambda governor: governor == "performance",
        "{}",
        "cpupower frequency-set --governor performance",
    ),
    Rule(
        "CPU clock",
        lambda probe: (probe.processor.allowed_megahertz, probe.processor.possible_megahertz),
        ge,
        "up to {} of {} MHz",
        "raise scaling_max_freq",
    ),
    Rule(
        "CPU quota",
        lambda probe: (probe.processor.quota, probe.host.cores),
        ge,
        "{:g} of {} CPUs",
        "a quota pauses threads at work: ask for a CPU set instead",
    ),
    Rule(
        "other processes",
        _busy,
        lambda busy, load, cores: busy == "none" and load <= cores / 2,
        "busy: {}; load {:.1f} on {} CPUs",
        "end them first; a load without a busy process is over, or hidden from this user",
    ),
)
GPU_RULES = (
    Rule(
        "GPU clocks",
        lambda gpu: (gpu.application_megahertz, gpu.default_application_megahertz),
        ge,
        "set to {} of {} MHz",
        "nvidia-smi --reset-applications-clocks",
    ),
    Rule(
        "GPU slowdown",
        lambda gpu: (", ".join(gpu.slowed_by) or "none",),
        lambda reasons: reasons == "none",
        "slowed by: {}",
        "check its cooling and power supply",
    ),
    Rule(
        "GPU power limit",
        lambda gpu: (gpu.power_limit_watts, gpu.default_power_limit_watts),
        ge,
        "{:.0f} of {:.0f} W",
        "raise it with nvidia-smi --power-limit",
    ),
    Rule(
        "GPU MIG",
        lambda gpu: (gpu.mig,),
        lambda mig: mig == "off",
        "MIG: {}",
        "a run needs whole GPUs",
        "error",
    ),
    Rule(
        "GPU processes",
        lambda gpu: (", ".join(map(str, gpu.processes)) or "none",),
        lambda processes: processes == "none",
        "processes: {}",
        "end these processes first",
    ),
)


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


def check_work_folder(survey: Survey) -> Iterator[Finding]:
    """Each node can read what the caller writes there, and the caller what the node writes."""
    unseen = "the caller cannot see what it writes"
    advice = "work in a folder that all nodes see at the same path"
    troubles = {
        report.node: report.probe.shared_trouble or ("" if report.note_arrived else unseen)
        for report in survey.node_reports
        if report.probe
    }
    return share_findings(
        "work folder",
        (
            (
                node,
                Verdict("error", trouble, advice) if trouble else Verdict("ok", "read and written"),
            )
            for node, trouble in troubles.items()
        ),
    )


def check_clocks(survey: Survey) -> Iterator[Finding]:
    """The nodes' clocks agree with this machine's, which looks at their files."""
    behind = {
        report.node: report.clock_offset or 0.0 for report in survey.node_reports if report.probe
    }
    return share_findings("clock", ((node, _judge_clock(by)) for node, by in behind.items()))


def _judge_clock(behind: float) -> Verdict:
    if abs(behind) < CLOCKS_APART_SECONDS:
        return Verdict("ok", f"less than {CLOCKS_APART_SECONDS:g} s apart, transfer included")
    what = f"{abs(behind):.1f} s {'behind' if behind > 0 else 'ahead of'} this machine's"
    return Verdict("warning", what, "set the clocks by NTP: Snakemake compares the times of files")


def check_machines(survey: Survey) -> Iterator[Finding]:
    """Machines are alike, have room, run at full clocks, and are not used by others."""
    for check, value in EQUAL.items():
        yield from check_equal(survey, check, value)
    devices = 1 if survey.report.share_cpus else survey.report.largest_shape[1]
    yield from check_minimum(
        survey,
        "CPUs for a run",
        lambda probe: probe.host.cores,
        least=devices * survey.report.threads_per_device,
        show=lambda cores: count(int(cores), "CPU"),
        level="error",
        advice="lower threads_per_device, or the devices per node of the topologies",
    )
    room = partial(check_minimum, survey, show=gibibytes)
    yield from room(
        "disk",
        lambda probe: probe.space.disk_free,
        least=survey.needed_bytes,
        level="error",
        advice="make room in the work folder",
    )
    yield from room(
        "memory",
        lambda probe: probe.space.memory_available,
        least=max((probe.host.memory_bytes for probe in survey.probes.values()), default=0) / 2,
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
    for rule in NODE_RULES:
        yield from check_each(survey, rule.check, rule.judge)


def check_gpus(survey: Survey) -> Iterator[Finding]:
    """As many GPUs as runs ask for, of one kind, whole, fast and unused."""
    yield from check_each(survey, "GPUs", partial(_judge_number, survey.report.on("cuda")))
    yield from check_each(survey, "GPU kind", partial(_judge_kinds, most_common(survey, _kinds)))
    for rule in GPU_RULES:
        yield from check_each(survey, rule.check, rule.judge_gpus)


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


CHECKS: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
    check_answers,
    check_work_folder,
    check_clocks,
    check_builds,
    check_machines,
    check_gpus,
    check_trials,
)


def find(survey: Survey) -> tuple[Finding, ...]:
    """The findings of all checks, in the order of the table."""
    return tuple(finding for check in CHECKS for finding in check(survey))
