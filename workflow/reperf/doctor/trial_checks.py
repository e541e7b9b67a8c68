"""Whether each build works on every node: it starts, its devices compute, and add up together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from reperf.builds import build_of
from reperf.doctor.survey import NOT_THERE, Survey, Verdict, check_each, most_common, span
from reperf.printed import ABSENT
from reperf.records.diagnosis import Diagnosis, Finding, Probe, Trial
from reperf.systems import Device, load_systems
from reperf.text import count

Kind = TypeVar("Kind")

LEAST_SHARE = 0.5
"""The share that an all-reduce should reach of the fastest node's, and of the ports' rate."""
SLOW_ADVICE = (
    "is another process there, or a link down? NCCL_DEBUG=INFO shows whether NCCL uses all ports"
)

HEADINGS = (
    "build",
    "starts",
    "devices of a node",
    "convolution off numpy's",
    "all-reduce in a node",
    "all-reduce over nodes",
    "library",
    "loaders of a node",
)


def check_builds(survey: Survey) -> Iterator[Finding]:
    """Each system's trainer starts everywhere, with the same packages, and a compiler if needed."""
    compiling: dict[tuple[str, Device], set[str]] = defaultdict(set)
    for run in survey.report.run_of_each_entry():
        varied = load_systems()[run.system].varied(run.variant)
        if run.variant and any(variant.compiles for variant in varied):
            compiling[build_of(run).id, run.device].add(run.variant)
    for build, recipe in survey.built.items():
        check = f"build {build}"
        if recipe is None:
            what = "not made, or from another recipe; the workflow makes it first"
            verdict = Verdict("warning", what, "call the doctor again then")
            yield verdict.on(check, *survey.probes)
            continue
        usual = most_common(survey, partial(_installed, build=build))
        variants = {device: names for (of, device), names in compiling.items() if of == build}
        judge = partial(_judge_build, build=build, recipe=recipe, usual=usual, variants=variants)
        yield from check_each(survey, check, judge)


def _judge_build(
    probe: Probe,
    build: str,
    recipe: str,
    usual: set[str] | None,
    variants: dict[Device, set[str]],
) -> Verdict:
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
    for device, names in variants.items():
        if not state.compilers.get(device):
            what = f"no compiler, which {' and '.join(sorted(names))} needs"
            advice = "install gcc and g++, or name others by CC and CXX; or take an image with them"
            return Verdict("error", what, advice)
    number = count(len(state.packages), "package")
    return Verdict("ok", f"{state.framework}, Python {state.python}, {number}; its trainer starts")


def _installed(probe: Probe, build: str) -> set[str] | None:
    state = probe.environments[build]
    if state.trouble:
        return None
    return {f"python {state.python}", *(f"{name} {at}" for name, at in state.packages.items())}


def check_trials(survey: Survey) -> Iterator[Finding]:
    """Each system's devices compute what numpy does, and add up with each other."""
    for name in dict.fromkeys(trial.name for trial in survey.trials):
        trials = [trial for trial in survey.trials if trial.name == name]
        for trial in trials:
            if trial.trouble:
                check = "devices" if len(trial.nodes) == 1 else "all-reduce"
                advice = f"what the ranks printed is in {trial.log}" if trial.log else ""
                verdict = Verdict("error", trial.trouble, advice)
                yield verdict.on(f"{check} of {name}", *trial.nodes)
        alone, together = _sound(trials)
        for devices, alike in _grouped(alone, devices_of).items():
            error = max(trial.convolution_error or 0.0 for trial in alike)
            what = f"{devices}; a convolution is within {error:.0e} of numpy's{_rates(alike)}"
            yield Verdict("ok", what).on(f"devices of {name}", *_nodes_of(alike))
        yield from _loaders(f"loader of {name}", alone)
        for tried in alone, together:
            yield from _all_reduces(f"all-reduce of {name}", survey, tried)


def _sound(trials: Iterable[Trial]) -> tuple[list[Trial], list[Trial]]:
    """The trials that did not fail: on single nodes, and over several."""
    sound = [trial for trial in trials if not trial.trouble]
    alone = [trial for trial in sound if len(trial.nodes) == 1]
    return alone, [trial for trial in sound if len(trial.nodes) > 1]


def _rates(alike: list[Trial]) -> str:
    """How fast a device multiplies matrices in each data type."""
    rates: dict[str, list[float]] = defaultdict(list)
    for trial in alike:
        for dtype, rate in trial.matrix_rates.items():
            rates[dtype].append(rate / 1e12)
    shown = [
        f"{span(values, '{:.3g}'.format)} TFLOP/s in {dtype}" for dtype, values in rates.items()
    ]
    return f"; it multiplies matrices at {', '.join(shown)}" if shown else ""


def _all_reduces(check: str, survey: Survey, trials: Iterable[Trial]) -> Iterator[Finding]:
    """Compare a node with the fastest node, and GPUs of several nodes with their ports."""
    by_ranks = _grouped(trials, lambda trial: (trial.world_size, trial.library))
    for (ranks, library), alike in by_ranks.items():
        if ranks == 1:
            verdict = Verdict(NOT_THERE, "one device, nothing to add up")
            yield verdict.on(check, *_nodes_of(alike))
            continue
        if len(alike[0].nodes) == 1:
            possible, whose = max(trial.bandwidth for trial in alike), "the fastest node reaches"
        else:
            ports = [sum(survey.probes[node].ports) for node in alike[0].nodes]
            possible, whose = min(ports) * 1e9 / 8 * library.startswith("NCCL"), "the ports carry"
        slow = [trial for trial in alike if trial.bandwidth < LEAST_SHARE * possible]
        for trial in slow:
            what = f"{_speeds([trial])}; {whose} {possible / 1e9:.3g} GB/s"
            yield Verdict("warning", what, SLOW_ADVICE).on(check, *trial.nodes)
        if fast := [trial for trial in alike if trial not in slow]:
            yield Verdict("ok", _speeds(fast)).on(check, *_nodes_of(fast))


def _loaders(check: str, trials: Iterable[Trial]) -> Iterator[Finding]:
    """Whether each node reads as fast as its devices train."""
    read = [trial for trial in trials if trial.loaded is not None]
    slow = [trial for trial in read if trial.needed and (trial.loaded or 0.0) < trial.needed]
    for trial in slow:
        advice = "more loader_threads, if the node has the CPUs; or DALI"
        yield Verdict("warning", _loader_speed([trial]), advice).on(check, *trial.nodes)
    if fast := [trial for trial in read if trial not in slow]:
        yield Verdict("ok", _loader_speed(fast)).on(check, *_nodes_of(fast))


def build_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """A row for each system and each of its builds that is made, as HEADINGS names its columns.

    Builds that start nowhere come last.
    """
    builds = {trial.name: trial.build for trial in diagnosis.trials}
    for probe in diagnosis.probes.values():
        for build in probe.environments:
            if build not in builds.values():  # it starts nowhere, and was not tried
                builds[build] = build
    return [_row(name, build, diagnosis) for name, build in builds.items()]


def _row(name: str, build: str, diagnosis: Diagnosis) -> tuple[str, ...]:
    trials = [trial for trial in diagnosis.trials if trial.name == name]
    alone, together = _sound(trials)
    silent = [node for node, probe in diagnosis.probes.items() if probe.environments[build].trouble]
    failed = [
        f"fails on {trial.nodes[0]}" for trial in trials if trial.trouble and len(trial.nodes) == 1
    ]
    row = (
        f"not on {', '.join(silent)}" if silent else "yes",
        "; ".join([*dict.fromkeys(map(devices_of, alone)), *failed]),
        f"{max(trial.convolution_error or 0.0 for trial in alone):.0e}" if alone else "",
        _bandwidths(alone),
        _bandwidths(together),
        "; ".join(dict.fromkeys(trial.library for trial in alone + together if trial.library)),
        _loader_speed(alone),
    )
    return name, *(value or ABSENT for value in row)


def devices_of(trial: Trial) -> str:
    """What a trial's devices are: "8 x NVIDIA H200"."""
    kinds = dict.fromkeys(trial.devices)
    return ", ".join(f"{trial.devices.count(kind)} x {kind}" for kind in kinds)


def _bandwidths(trials: Iterable[Trial]) -> str:
    """What trials reached with the largest all-reduce: "0.44 to 0.47 GB/s"; "" if with none."""
    reached = [trial.bandwidth for trial in trials if trial.transfers]
    return _range(reached) if reached else ""


def _loader_speed(trials: Sequence[Trial]) -> str:
    """What nodes read, and what their devices need: "410 to 430 samples/s, 380 needed"."""
    speeds = [trial.loaded for trial in trials if trial.loaded is not None]
    if not speeds:
        return ""
    needed = max((trial.needed for trial in trials if trial.needed), default=None)
    return f"{span(speeds, '{:,.0f}'.format)} samples/s" + (
        f", {needed:,.0f} needed" if needed else ""
    )


def _speeds(alike: list[Trial]) -> str:
    """The bandwidths of trials with the same ranks and library, for each size."""
    first = alike[0]
    sizes = (
        f"{size.bytes / 1e6:.3g} MB at "
        + _range([trial.transfers[place].bus_bandwidth(trial.world_size) for trial in alike])
        for place, size in enumerate(first.transfers)
    )
    return f"{count(first.world_size, 'rank')} by {first.library}: {', '.join(sizes)}"


def _range(speeds: list[float]) -> str:
    return f"{span([speed / 1e9 for speed in speeds], '{:.3g}'.format)} GB/s"


def _grouped(trials: Iterable[Trial], kind: Callable[[Trial], Kind]) -> dict[Kind, list[Trial]]:
    """Trials by something that they have in common."""
    groups = defaultdict(list)
    for trial in trials:
        groups[kind(trial)].append(trial)
    return groups


def _nodes_of(trials: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(node for trial in trials for node in trial.nodes)
