"""Whether each build works on every node: it starts, its devices compute, and add up together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from reperf.builds import build_of
from reperf.doctor.case import NOT_THERE, Case, Verdict, each, finding, span, usual
from reperf.doctor.diagnosis import Finding, Hop, Probe, Trial
from reperf.printed import count
from reperf.systems import Device, load_systems

Kind = TypeVar("Kind")

FABRIC_SHARE = 0.5
"""The share of the fabric's rate that an all-reduce of large messages should reach."""
NODE_SHARE = 0.5
"""The share of the fastest node's bandwidth that every node should reach by itself."""


def environments(case: Case) -> Iterator[Finding]:
    """Each system's trainer starts everywhere, with the same packages."""
    for build, recipe in case.built.items():
        check = f"build {build}"
        if recipe is None:
            what = "not made, or from another recipe; the workflow makes it first"
            yield finding(check, case.nodes, Verdict("warning", what, "call the doctor again then"))
            continue
        most = usual(case, partial(_installed, build=build))
        judge = partial(_judge_build, build=build, recipe=recipe, most=most)
        yield from each(case, check, judge)


def compilers(case: Case) -> Iterator[Finding]:
    """What compiles while it trains finds a compiler."""
    needed: dict[tuple[str, Device], set[str]] = defaultdict(set)
    for run in case.report.run_of_each_entry():
        varied = load_systems()[run.system].varied(run.variant)
        if run.variant and any(variant.compiles for variant in varied):
            needed[build_of(run).id, run.device].add(run.variant)
    for (build, device), variants in needed.items():
        judge = partial(_judge_compiler, build=build, device=device, of=variants)
        yield from each(case, f"compiler of {build}", judge)


def _judge_compiler(probe: Probe, build: str, device: Device, of: set[str]) -> Verdict:
    state = probe.environments[build]
    if state.trouble:
        return Verdict(NOT_THERE, "the build does not start")
    if found := state.compilers.get(device):
        return Verdict("ok", found)
    what = f"none, which {' and '.join(sorted(of))} needs"
    advice = "install gcc and g++, or name others by CC and CXX; or take an image that has them"
    return Verdict("error", what, advice)


def _judge_build(probe: Probe, build: str, recipe: str, most: set[str] | None) -> Verdict:
    state, installed = probe.environments[build], _installed(probe, build)
    advice = "it must lie in the shared folder, and so must its Python"
    if state.trouble:
        return Verdict("error", state.trouble, advice)
    if state.recipe_sha256 != recipe:
        here = (state.recipe_sha256 or "")[:12]
        what = f"made from the recipe {here}, elsewhere {recipe[:12]}"
        return Verdict("error", what, advice)
    if state.unfit:
        return Verdict("error", state.unfit, "docs/systems.md says which builds run there")
    if installed is not None and most is not None and installed != most:
        here, elsewhere = (
            ", ".join(sorted(names)) for names in (installed - most, most - installed)
        )
        what = f"{here or 'missing'} here, {elsewhere or 'missing'} elsewhere"
        return Verdict("error", what, advice)
    number = count(len(state.packages), "package")
    return Verdict("ok", f"{state.framework}, Python {state.python}, {number}; its trainer starts")


def _installed(probe: Probe, build: str) -> set[str] | None:
    state = probe.environments[build]
    if state.trouble:
        return None
    return {f"python {state.python}", *(f"{name} {at}" for name, at in state.packages.items())}


def trials(case: Case) -> Iterator[Finding]:
    """Each system's devices compute what numpy does, and add up with each other."""
    for name in dict.fromkeys(trial.name for trial in case.trials):
        own = [trial for trial in case.trials if trial.name == name]
        alone = [trial for trial in own if len(trial.nodes) == 1]
        together = [trial for trial in own if len(trial.nodes) > 1]
        yield from _failed(f"devices of {name}", alone)
        yield from _devices(f"devices of {name}", alone)
        yield from _within_nodes(f"all-reduce of {name}", alone)
        yield from _neighbours(f"neighbours of {name}", alone)
        yield from _loaders(f"loader of {name}", alone)
        yield from _failed(f"all-reduce of {name}", together)
        for trial in together:
            yield from _over_nodes(f"all-reduce of {name}", case, trial)
        yield from _neighbours(f"neighbours of {name}", together)


def _failed(check: str, tried: Iterable[Trial]) -> Iterator[Finding]:
    for trial in tried:
        if trial.trouble:
            advice = f"what the ranks printed is in {trial.log}" if trial.log else ""
            yield finding(check, trial.nodes, Verdict("error", trial.trouble, advice))


def _devices(check: str, tried: Iterable[Trial]) -> Iterator[Finding]:
    """What the devices are, and how near their convolutions are to numpy's."""
    for devices, alike in _grouped(tried, devices_of).items():
        error = max(trial.convolution_error or 0.0 for trial in alike)
        what = f"{devices}; a convolution is within {error:.0e} of numpy's{_rates(alike)}"
        yield finding(check, _nodes_of(alike), Verdict("ok", what))


def _rates(alike: list[Trial]) -> str:
    """How fast a device multiplies matrices in each data type."""
    types = dict.fromkeys(name for trial in alike for name in trial.matrix_rates)
    found = {
        name: [trial.matrix_rates[name] for trial in alike if name in trial.matrix_rates]
        for name in types
    }
    said = [
        f"{span(rates, lambda rate: f'{rate / 1e12:.3g}')} TFLOP/s in {name}"
        for name, rates in found.items()
    ]
    return f"; it multiplies matrices at {', '.join(said)}" if said else ""


def _loaders(check: str, tried: Iterable[Trial]) -> Iterator[Finding]:
    """Whether each node reads as fast as its devices train."""
    read = [trial for trial in tried if trial.loaded is not None]
    slow = [trial for trial in read if trial.needed and (trial.loaded or 0.0) < trial.needed]
    for trial in slow:
        advice = "more loader_threads, if the node has the CPUs; or DALI"
        yield finding(check, trial.nodes, Verdict("warning", loader_speed([trial]), advice))
    if well := [trial for trial in read if trial not in slow]:
        yield finding(check, _nodes_of(well), Verdict("ok", loader_speed(well)))


def loader_speed(read: Sequence[Trial]) -> str:
    """What nodes read, and what their devices need: "410 to 430 samples/s, 380 needed"."""
    speeds = [trial.loaded for trial in read if trial.loaded is not None]
    if not speeds:
        return ""
    needed = max((trial.needed for trial in read if trial.needed), default=None)
    return f"{span(speeds, '{:,.0f}'.format)} samples/s" + (
        f", {needed:,.0f} needed" if needed else ""
    )


def _within_nodes(check: str, tried: Iterable[Trial]) -> Iterator[Finding]:
    """What the devices of each node reach among themselves."""
    for (ranks, _), alike in _grouped(tried, lambda one: (one.world_size, one.library)).items():
        if ranks == 1:
            what = "one device, nothing to add up"
            yield finding(check, _nodes_of(alike), Verdict(NOT_THERE, what))
            continue
        best = max(trial.bandwidth for trial in alike)
        slow = [trial for trial in alike if trial.bandwidth < NODE_SHARE * best]
        for trial in slow:
            what = f"{_speeds([trial])}; the fastest node reaches {best / 1e9:.3g} GB/s"
            advice = "is the node used by others, or one of its links down?"
            yield finding(check, trial.nodes, Verdict("warning", what, advice))
        well = [trial for trial in alike if trial not in slow]
        yield finding(check, _nodes_of(well), Verdict("ok", _speeds(well)))


def _over_nodes(check: str, case: Case, trial: Trial) -> Iterator[Finding]:
    """What all devices reach together; GPUs' beside what the ports could carry."""
    if not trial.transfers:
        return
    yield finding(check, trial.nodes, Verdict("ok", _speeds([trial])))
    ports = [[port for port in case.probes[node].fabric if port.active] for node in trial.nodes]
    rate = min(sum(port.gigabits for port in own) for own in ports) * 1e9 / 8
    reached = max(one.bus_bandwidth(trial.world_size) for one in trial.transfers)
    if trial.library.startswith("NCCL") and reached < FABRIC_SHARE * rate:
        what = f"{reached / 1e9:.3g} GB/s over ports of {rate / 1e9:.3g} GB/s"
        advice = "run with NCCL_DEBUG=INFO: does it use all ports, and GPUDirect?"
        yield finding(check, trial.nodes, Verdict("warning", what, advice))


def _neighbours(check: str, tried: Iterable[Trial]) -> Iterator[Finding]:
    """What ranks next to each other reach; of trials over nodes, those on different ones."""
    measured = (trial for trial in tried if hops_between(trial))
    for (ranks, library), alike in _grouped(
        measured, lambda one: (one.world_size, one.library)
    ).items():
        hops = [(trial, hop) for trial in alike for hop in hops_between(trial)]
        ways = {
            "to the next rank": [hop for _, hop in hops if hop.sender < hop.receiver],
            "back": [hop for _, hop in hops if hop.sender > hop.receiver],
        }
        said = "; ".join(f"{way} {_hop_speeds(own)}" for way, own in ways.items())
        largest = max(hop.bytes for _, hop in hops)
        slow, slowest = min(
            (pair for pair in hops if pair[1].bytes == largest), key=lambda pair: pair[1].bandwidth
        )
        where = f" on {slow.nodes[0]}" if len(alike) > 1 else ""
        what = f"{count(ranks, 'rank')} by {library}: {said}"
        if len(hops) > 2 * len({hop.bytes for _, hop in hops}):  # more than one pair
            what += f"; slowest from rank {slowest.sender} to rank {slowest.receiver}{where}"
        yield finding(check, _nodes_of(alike), Verdict("ok", what))


def hops_between(trial: Trial) -> list[Hop]:
    """A trial's hops: over several nodes, those from one node to another."""
    each = trial.world_size // len(trial.nodes)
    alone = len(trial.nodes) == 1
    return [hop for hop in trial.hops if alone or hop.sender // each != hop.receiver // each]


def _hop_speeds(hops: list[Hop]) -> str:
    sizes = {hop.bytes: [one.bandwidth for one in hops if one.bytes == hop.bytes] for hop in hops}
    return ", ".join(f"{size / 1e6:.3g} MB at {_range(found)}" for size, found in sizes.items())


def neighbour_speed(tried: Iterable[Trial]) -> str:
    """What ranks next to each other reach with the most bytes; "" if nobody measured it."""
    hops = [hop for trial in tried for hop in hops_between(trial)]
    most = max((hop.bytes for hop in hops), default=0)
    return _range([hop.bandwidth for hop in hops if hop.bytes == most]) if hops else ""


def devices_of(trial: Trial) -> str:
    """What a trial's devices are: "8 x NVIDIA H200"."""
    kinds = dict.fromkeys(trial.devices)
    return ", ".join(f"{trial.devices.count(kind)} x {kind}" for kind in kinds)


def bandwidths(tried: Iterable[Trial]) -> str:
    """What trials reached with the largest all-reduce: "0.44 to 0.47 GB/s"; "" if with none."""
    reached = [trial.bandwidth for trial in tried if trial.transfers]
    return _range(reached) if reached else ""


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
    return f"{span(speeds, lambda speed: f'{speed / 1e9:.3g}')} GB/s"


def _grouped(tried: Iterable[Trial], kind: Callable[[Trial], Kind]) -> dict[Kind, list[Trial]]:
    """The trials that did not fail, by something that they have in common."""
    groups = defaultdict(list)
    for trial in tried:
        if not trial.trouble:
            groups[kind(trial)].append(trial)
    return groups


def _nodes_of(tried: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(node for trial in tried for node in trial.nodes)
