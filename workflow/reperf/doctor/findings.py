"""The checks of nodes, from what they reported to findings; no check asks a machine anything."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TypeVar

from reperf.builds import build_of
from reperf.config import Report
from reperf.doctor.hardware import ADVICE
from reperf.number_format import gibibytes
from reperf.records.diagnosis import Finding, NodeReport, Probe, Trial, Verdict
from reperf.systems import Device, load_systems
from reperf.text import count

Value = TypeVar("Value")
Judge = Callable[[NodeReport, Probe], Verdict | None]
"""Judges one node by what it reported; None where it has no such thing, or does not report it."""

CLOCKS_APART_SECONDS = 1.0
_WITHOUT_COMPILER = "install gcc and g++, or name others by CC and CXX; or take an image with them"


@dataclass(frozen=True)
class Survey:
    """All that the checks know."""

    report: Report  # what is to run
    node_reports: tuple[NodeReport, ...]  # of every node of the place where it runs
    trials: tuple[Trial, ...]  # of each system, on each node and on all together
    built: dict[str, str | None]
    """Build -> SHA-256 of what it was made from; None: not made, or of another recipe."""
    needed_bytes: int  # what the report has yet to write into the work folder

    @property
    def probes(self) -> dict[str, Probe]:
        """Node -> what it reported; without the nodes that did not answer."""
        return {report.node: report.probe for report in self.node_reports if report.probe}


def find(survey: Survey) -> Iterator[Finding]:
    """The findings of all checks; what nodes do not have is in a single row at the end."""
    yield from _answers(survey)
    lacking: dict[str, list[str]] = {node: [] for node in survey.probes}
    for check, judge in _judges(survey).items():
        nodes_of: dict[Verdict, list[str]] = defaultdict(list)
        for report in survey.node_reports:
            if report.probe is None:
                continue
            if verdict := judge(report, report.probe):
                nodes_of[verdict].append(report.node)
            else:
                lacking[report.node].append(check)
        for verdict, nodes in nodes_of.items():
            yield verdict.on(check, *nodes)
    yield from check_trials(
        survey.trials, {node: sum(probe.ports) for node, probe in survey.probes.items()}
    )
    for checks in dict.fromkeys(filter(None, map(tuple, lacking.values()))):
        what = f"{', '.join(checks)}: none here, or not reported"
        nodes = [node for node, others in lacking.items() if tuple(others) == checks]
        yield Verdict("not there", what).on("all else", *nodes)


def _judges(survey: Survey) -> dict[str, Judge]:
    """The checks of each node: nodes with the same verdict share a finding."""
    devices = 1 if survey.report.share_cpus else survey.report.largest_shape[1]
    return {
        "work folder": _judge_folder,
        "clock": _judge_clock,
        **{f"build {build}": _judge_of_build(survey, build) for build in survey.built},
        **{check: _judge_of_equal(survey, value) for check, value in EQUAL.items()},
        **{check: partial(lambda c, _, probe: probe.readings.get(c), check) for check in ADVICE},
        "CPUs for a run": partial(_judge_cpus, devices * survey.report.threads_per_device),
        "disk": partial(_judge_disk, survey.needed_bytes),
        "GPUs": partial(_judge_gpus, survey.report.on("cuda")),
        "GPU kind": partial(_judge_kinds, _most_common(survey, _kinds)),
    }


def _answers(survey: Survey) -> Iterator[Finding]:
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


def _judge_folder(report: NodeReport, probe: Probe) -> Verdict:
    """Whether the node reads what the caller writes there, and the caller what the node writes."""
    unseen = "" if report.note_arrived else "the caller cannot see what it writes"
    if trouble := probe.shared_trouble or unseen:
        return Verdict("error", trouble, "work in a folder that all nodes see at the same path")
    return Verdict("ok", "read and written")


def _judge_clock(report: NodeReport, _: Probe) -> Verdict:
    """Whether the node's clock agrees with this machine's, which looks at its files."""
    behind = report.clock_offset or 0.0
    if abs(behind) < CLOCKS_APART_SECONDS:
        return Verdict("ok", f"less than {CLOCKS_APART_SECONDS:g} s apart, transfer included")
    what = f"{abs(behind):.1f} s {'behind' if behind > 0 else 'ahead of'} this machine's"
    return Verdict("warning", what, "set the clocks by NTP: Snakemake compares the times of files")


def _judge_of_build(survey: Survey, build: str) -> Judge:
    """Each system's trainer starts everywhere, with the same packages, and a compiler if needed."""
    recipe = survey.built[build]
    if recipe is None:
        what = "not made, or from another recipe; the workflow makes it first"
        not_made = Verdict("warning", what, "call the doctor again then")
        return lambda *_: not_made
    compiling: dict[Device, set[str]] = defaultdict(set)
    for run in survey.report.run_of_each_entry():
        varied = load_systems()[run.system].varied(run.variant)
        if run.variant and build_of(run).id == build and any(one.compiles for one in varied):
            compiling[run.device].add(run.variant)
    usual = _most_common(survey, partial(_installed, build=build))

    def judge(_: NodeReport, probe: Probe) -> Verdict:
        state, installed = probe.environments[build], _installed(probe, build)
        advice = "it must lie in the shared folder, and so must its Python"
        if state.trouble:
            return Verdict("error", state.trouble, advice)
        if state.recipe_sha256 != recipe:
            here = (state.recipe_sha256 or "")[:12]
            return Verdict("error", f"made from the recipe {here}, elsewhere {recipe[:12]}", advice)
        if state.unfit:
            return Verdict("error", state.unfit, "docs/systems.md says which builds run there")
        if installed is not None and usual is not None and installed != usual:
            here, elsewhere = (
                ", ".join(sorted(names)) or "missing"
                for names in (installed - usual, usual - installed)
            )
            return Verdict("error", f"{here} here, {elsewhere} elsewhere", advice)
        for device, variants in compiling.items():
            if not state.compilers.get(device):
                what = f"no compiler, which {' and '.join(sorted(variants))} needs"
                return Verdict("error", what, _WITHOUT_COMPILER)
        packages = count(len(state.packages), "package")
        what = f"{state.framework}, Python {state.python}, {packages}; its trainer starts"
        return Verdict("ok", what)

    return judge


def _installed(probe: Probe, build: str) -> set[str] | None:
    state = probe.environments[build]
    if state.trouble:
        return None
    return {f"python {state.python}", *(f"{name} {at}" for name, at in state.packages.items())}


def _topology(probe: Probe) -> str | None:
    """A short name for what nvidia-smi topo -m printed, which results/doctor.json holds."""
    matrix = probe.host.topology_matrix
    return f"matrix {sha256(matrix.encode()).hexdigest()[:8]}" if matrix else None


EQUAL: dict[str, Callable[[Probe], str | None]] = {
    "CPU": lambda probe: f"{probe.host.cores} x {probe.host.cpu}",
    "system": lambda probe: f"{probe.host.os}, kernel {probe.host.kernel}",
    "kernel settings": lambda probe: ", ".join(map(" ".join, probe.settings.items())) or None,
    "GPU driver": lambda probe: (
        f"{probe.host.driver}, CUDA {probe.host.cuda}" if probe.host.driver else None
    ),
    "GPU topology": _topology,
    "InfiniBand": lambda probe: (
        ", ".join(
            f"{probe.ports.count(rate)} x {rate:g} Gb/s" for rate in dict.fromkeys(probe.ports)
        )
        or None
    ),
}  # what must be the same on all nodes


def _judge_of_equal(survey: Survey, value: Callable[[Probe], str | None]) -> Judge:
    usual = _most_common(survey, value)

    def judge(_: NodeReport, probe: Probe) -> Verdict | None:
        this = value(probe)
        if this != usual:
            what = f"{this or 'none'}, elsewhere {usual or 'none'}"
            return Verdict("warning", what, "runs on different nodes cannot be compared")
        return Verdict("ok", this) if this else None

    return judge


def _most_common(survey: Survey, value: Callable[[Probe], Value]) -> Value | None:
    """The value of most nodes, without the nodes that have none; in a tie, the first node's."""
    values = [value(probe) for probe in survey.probes.values()]
    return max((value for value in values if value is not None), key=values.count, default=None)


def _judge_cpus(needed: int, _: NodeReport, probe: Probe) -> Verdict:
    if probe.host.cores >= needed:
        return Verdict("ok", f"at least {needed}")
    advice = "lower threads_per_device, or the devices per node of the topologies"
    return Verdict("error", f"{count(probe.host.cores, 'CPU')}; at least {needed} needed", advice)


def _judge_disk(needed: int, _: NodeReport, probe: Probe) -> Verdict | None:
    if probe.disk_free is None:
        return None
    if probe.disk_free >= needed:
        return Verdict("ok", f"at least {gibibytes(needed)} free" if needed else "needs no more")
    what = f"{gibibytes(probe.disk_free)} free; at least {gibibytes(needed)} needed"
    return Verdict("error", what, "make room in the work folder")


def _judge_gpus(on_gpus: Report, _: NodeReport, probe: Probe) -> Verdict | None:
    there, wanted = len(probe.host.gpus), on_gpus.largest_shape[1]
    if on_gpus.suites and there < wanted:
        advice = "see what nvidia-smi says on the node"
        return Verdict("error", f"{there} seen, runs ask for {wanted}", advice)
    return Verdict("ok", f"{there} seen") if there else None


def _judge_kinds(usual: tuple[str, ...] | None, _: NodeReport, probe: Probe) -> Verdict | None:
    kinds = _kinds(probe)
    if len(kinds) > 1 or kinds != usual:
        what = f"{' and '.join(kinds) or 'none'}, elsewhere {' and '.join(usual or ()) or 'none'}"
        return Verdict("error", what, "a report needs GPUs of one kind")
    return Verdict("ok", kinds[0]) if kinds else None


def _kinds(probe: Probe) -> tuple[str, ...]:
    kinds = {f"{gpu.name}, {gibibytes(gpu.memory_bytes)}" for gpu in probe.host.gpus}
    return tuple(sorted(kinds))


Kind = TypeVar("Kind")

LEAST_SHARE = 0.5
"""The share that an all-reduce should reach of the fastest node's, and of the ports' rate."""
SLOW_ADVICE = (
    "is another process there, or a link down? NCCL_DEBUG=INFO shows whether NCCL uses all ports"
)


def check_trials(trials: Sequence[Trial], port_rates: Mapping[str, float]) -> Iterator[Finding]:
    """Each system's devices compute what numpy does, and add up with each other.

    `port_rates` are gigabits per second of each node's ports.
    """
    for name, of_system in _grouped(trials, lambda trial: trial.name).items():
        for trial in of_system:
            if trial.trouble:
                check = "devices" if len(trial.nodes) == 1 else "all-reduce"
                advice = f"what the ranks printed is in {trial.log}" if trial.log else ""
                verdict = Verdict("error", trial.trouble, advice)
                yield verdict.on(f"{check} of {name}", *trial.nodes)
        sound = [trial for trial in of_system if not trial.trouble]
        alone = [trial for trial in sound if len(trial.nodes) == 1]
        for devices, alike in _grouped(alone, _devices_of).items():
            error = max(trial.convolution_error or 0.0 for trial in alike)
            what = f"{devices}; a convolution is within {error:.0e} of numpy's{_rates(alike)}"
            yield Verdict("ok", what).on(f"devices of {name}", *_nodes_of(alike))
        together = [trial for trial in sound if len(trial.nodes) > 1]
        for tried in alone, together:
            yield from _all_reduces(f"all-reduce of {name}", port_rates, tried)


def _devices_of(trial: Trial) -> str:
    """What a trial's devices are: "8 x NVIDIA H200"."""
    kinds = dict.fromkeys(trial.devices)
    return ", ".join(f"{trial.devices.count(kind)} x {kind}" for kind in kinds)


def _rates(alike: list[Trial]) -> str:
    """How fast a device multiplies matrices in each data type."""
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for trial in alike:
        for dtype, rate in trial.matrix_rates.items():
            rates[dtype][trial.nodes[0]] = rate / 1e12
    shown = [f"{_span(of_nodes)} TFLOP/s in {dtype}" for dtype, of_nodes in rates.items()]
    return f"; it multiplies matrices at {', '.join(shown)}" if shown else ""


def _all_reduces(
    check: str, port_rates: Mapping[str, float], trials: Iterable[Trial]
) -> Iterator[Finding]:
    """Compare a node with the fastest node, and GPUs of several nodes with their ports."""
    by_ranks = _grouped(trials, lambda trial: (trial.world_size, trial.library))
    for (ranks, library), alike in by_ranks.items():
        if ranks == 1:  # nothing to add up
            continue
        if len(alike[0].nodes) == 1:
            possible, whose = max(trial.bandwidth for trial in alike), "the fastest node reaches"
        else:
            least = min(port_rates[node] for node in alike[0].nodes)
            possible, whose = least * 1e9 / 8 * library.startswith("NCCL"), "the ports carry"
        slow = [trial for trial in alike if trial.bandwidth < LEAST_SHARE * possible]
        for trial in slow:
            what = f"{_speeds([trial])}; {whose} {possible / 1e9:.3g} GB/s"
            yield Verdict("warning", what, SLOW_ADVICE).on(check, *trial.nodes)
        if fast := [trial for trial in alike if trial not in slow]:
            yield Verdict("ok", _speeds(fast)).on(check, *_nodes_of(fast))


def _speeds(alike: list[Trial]) -> str:
    """The bandwidths of trials with the same ranks and library, for each size."""
    ranks = alike[0].world_size
    sizes = []
    names = [", ".join(trial.nodes) for trial in alike]
    for transfers in zip(*(trial.transfers for trial in alike), strict=True):
        speeds = (transfer.bus_bandwidth(ranks) / 1e9 for transfer in transfers)
        span = _span(dict(zip(names, speeds, strict=True)))
        sizes.append(f"{transfers[0].bytes / 1e6:.3g} MB at {span} GB/s")
    return f"{count(ranks, 'rank')} by {alike[0].library}: {', '.join(sizes)}"


def _span(speeds: Mapping[str, float]) -> str:
    """The speeds of nodes, "74.7 (node3) to 112"; a single value if all look alike."""
    slowest = min(speeds, key=speeds.__getitem__)
    least, most = (f"{speed:.3g}" for speed in (speeds[slowest], max(speeds.values())))
    return least if least == most else f"{least} ({slowest}) to {most}"


def _grouped(trials: Iterable[Trial], kind: Callable[[Trial], Kind]) -> dict[Kind, list[Trial]]:
    groups = defaultdict(list)
    for trial in trials:
        groups[kind(trial)].append(trial)
    return groups


def _nodes_of(trials: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(node for trial in trials for node in trial.nodes)
