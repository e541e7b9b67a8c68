"""Whether the devices of each node compute well, and add up together."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from reperf.records.diagnosis import Finding, Trial, Verdict
from reperf.text import count

Kind = TypeVar("Kind")

LEAST_SHARE = 0.5
"""The share that an all-reduce should reach of the fastest node's, and of the ports' rate."""
SLOW_ADVICE = (
    "is another process there, or a link down? NCCL_DEBUG=INFO shows whether NCCL uses all ports"
)


def check_trials(trials: Sequence[Trial], port_rates: Mapping[str, float]) -> Iterator[Finding]:
    """Each system's devices compute what numpy does, and add up with each other.

    Args:
        port_rates: node -> gigabits per second of its ports.
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
    rates: dict[str, list[float]] = defaultdict(list)
    for trial in alike:
        for dtype, rate in trial.matrix_rates.items():
            rates[dtype].append(rate / 1e12)
    shown = [
        f"{_span(values, '{:.3g}'.format)} TFLOP/s in {dtype}" for dtype, values in rates.items()
    ]
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
    for transfers in zip(*(trial.transfers for trial in alike), strict=True):
        speeds = [transfer.bus_bandwidth(ranks) / 1e9 for transfer in transfers]
        sizes.append(f"{transfers[0].bytes / 1e6:.3g} MB at {_span(speeds, '{:.3g}'.format)} GB/s")
    return f"{count(ranks, 'rank')} by {alike[0].library}: {', '.join(sizes)}"


def _span(values: Collection[float], show: Callable[[float], str]) -> str:
    """The least and the greatest value, "74.7 to 112"; a single value if both look alike."""
    return " to ".join(dict.fromkeys(map(show, (min(values), max(values)))))


def _grouped(trials: Iterable[Trial], kind: Callable[[Trial], Kind]) -> dict[Kind, list[Trial]]:
    """Trials by something that they have in common."""
    groups = defaultdict(list)
    for trial in trials:
        groups[kind(trial)].append(trial)
    return groups


def _nodes_of(trials: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(node for trial in trials for node in trial.nodes)
