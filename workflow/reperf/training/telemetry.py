"""Power, utilisation and clock of the GPUs while a run trains, through NVML.

The run's first node meters its own GPUs. On every other node this module is a program that prints
what its GPUs report. The first node notes when each line arrives, so the nodes' clocks need not
agree. A meter knows nothing about iterations: all samples are kept, and afterwards those between
the ends of the window count.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import isnan, nan
from statistics import fmean
from typing import Any, NamedTuple

import pynvml

from reperf.machine import gpus, visible_names
from reperf.records.run_record import Power

_SAMPLE_SECONDS = 0.5
_SECONDS_TO_END = 5.0
_SUMS = ("mean_watts", "energy_joules")
_MEANS = ("mean_utilisation_percent", "mean_mhz", "throttled", "capped")
_HELD = (
    pynvml.nvmlClocksThrottleReasonHwSlowdown
    | pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
    | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
)
_CAPPED = pynvml.nvmlClocksThrottleReasonSwPowerCap


class Reading(NamedTuple):
    """What all metered GPUs of a node report, together."""

    joules: float  # energy used since some moment in the past
    percent: float  # how busy they are, on average
    mhz: float = nan
    """Their multiprocessors' clock, on average; not a number: the driver does not say."""
    throttled: float = nan
    """The share of them that are held back by more than their own power limit; likewise."""
    capped: float = nan  # the share of them that are at their power limit; likewise


Samples = list[tuple[float, Reading]]
"""A node's readings, each with its time in seconds, by the clock that the step log uses."""


def _power_between(samples: Samples, begin: float, end: float) -> tuple[float, ...]:
    """The values of _SUMS and _MEANS of a node between two times that its samples cover."""
    import numpy as np  # noqa: PLC0415 - runs without a GPU start sooner

    times, joules, *others = np.array([(at, *reading) for at, reading in samples]).T
    energy = np.interp(end, times, joules) - np.interp(begin, times, joules)
    inside = times[(begin < times) & (times < end)]
    at = np.array([begin, *inside, end])
    means = (np.trapezoid(np.interp(at, times, each), at) / (end - begin) for each in others)
    return (energy / (end - begin), energy, *means)


@contextmanager
def gpu_meters(
    nodes: Sequence[str],
    used: Sequence[str],
    on_others: Sequence[str],
    environment: Mapping[str, str],
) -> Iterator[dict[str, Samples]]:
    """Meter the GPUs of a run's nodes, this machine first, while the block runs.

    Args:
        used: the numbers or UUIDs of this machine's GPUs; none: nothing is metered.
        on_others: the command that prints the other nodes' readings; empty where there are none.

    Yields:
        Node -> its samples; a node that is never heard of has none. Whatever becomes of a meter,
        the run goes on.
    """
    found: dict[str, Samples] = {}
    if not used or all(gpu.gfx for gpu in gpus()):  # NVML says nothing of AMD's
        yield found
        return
    pynvml.nvmlInit()
    stop, process = threading.Event(), None
    local = ((nodes[0], reading) for reading in readings(used, stop))
    meters = [threading.Thread(target=keep, args=(local, found), daemon=True)]
    try:
        if on_others:
            process = subprocess.Popen(
                on_others,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            remote = read(process.stdout or ())
            meters.append(threading.Thread(target=keep, args=(remote, found), daemon=True))
        for meter in meters:
            meter.start()
        yield found
    finally:
        stop.set()
        if process:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)
            process.kill()
            process.wait()
        for meter in meters:
            if meter.is_alive():
                meter.join(timeout=_SECONDS_TO_END)
        pynvml.nvmlShutdown()


def readings(used: Sequence[str], stop: threading.Event) -> Iterator[Reading]:
    """What GPUs report, every half a second until told to stop, or until one no longer answers."""
    with suppress(pynvml.NVMLError):
        yield _read(used)
        while not stop.wait(_SAMPLE_SECONDS):
            yield _read(used)
        yield _read(used)


def read(lines: Iterable[bytes]) -> Iterator[tuple[str, Reading]]:
    """The readings that the program below prints on other nodes, each with its node."""
    for line in lines:
        with suppress(ValueError, TypeError):
            node, *numbers = line.decode(errors="replace").split()
            yield node, Reading(*map(float, numbers))


def keep(metered: Iterable[tuple[str, Reading]], found: dict[str, Samples]) -> None:
    for node, reading in metered:
        found.setdefault(node, []).append((time.perf_counter(), reading))


def used_gpus(environment: Mapping[str, str], count: int) -> tuple[str, ...]:
    """The first GPUs that a process with these variables sees, as CUDA_VISIBLE_DEVICES has it."""
    names = visible_names(environment)
    return tuple(map(str, range(count))) if names is None else names[:count]


def power_of_window(
    meters: Mapping[str, Samples], window: tuple[int, int], ends: Mapping[int, float]
) -> Power | None:
    """What was metered between the ends of two iterations, on all nodes whose meters cover it.

    Args:
        meters: node -> its samples; all have equally many GPUs.
        ends: iteration -> its end in seconds, by the meters' clock.
    """
    first, last = window
    if first not in ends or last not in ends:
        return None
    begin, end = ends[first], ends[last]
    covered = {
        node: _power_between(samples, begin, end)
        for node, samples in meters.items()
        if samples and samples[0][0] <= begin < end <= samples[-1][0]
    }
    if not covered:
        return None
    total: dict[str, Any] = {}
    for name, *values in zip((*_SUMS, *_MEANS), *covered.values(), strict=True):
        value = float(sum(values)) if name in _SUMS else fmean(values)
        total[name] = None if isnan(value) else value
    return Power(**total, nodes=tuple(covered), first=first, last=last)


def _read(used: Sequence[str]) -> Reading:
    handles = [handle_of(name) for name in used]
    joules = sum(map(pynvml.nvmlDeviceGetTotalEnergyConsumption, handles)) / 1000
    busy = [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
    clocks = [
        _known(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM) for handle in handles
    ]
    reasons = [
        _known(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) for handle in handles
    ]
    held, capped = (
        fmean(nan if isnan(each) else bool(int(each) & mask) for each in reasons)
        for mask in (_HELD, _CAPPED)
    )
    return Reading(joules, fmean(busy), fmean(clocks), held, capped)


def _known(ask: Callable[..., int], *of: object) -> float:
    """What NVML answers; not a number where it does not say, as for a part of a split GPU."""
    try:
        return ask(*of)
    except pynvml.NVMLError:
        return nan


def handle_of(name: str) -> Any:  # noqa: ANN401 - NVML's own
    """NVML's handle of the GPU with this number or UUID."""
    if name.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    return pynvml.nvmlDeviceGetHandleByUUID(name)


def main() -> None:
    """Print this node's readings; the arguments are how many GPUs it meters, and its name."""
    pynvml.nvmlInit()
    node = sys.argv[2] if sys.argv[2:] else os.environ["SLURMD_NODENAME"]
    for reading in readings(used_gpus(os.environ, int(sys.argv[1])), threading.Event()):
        print(node, *reading, flush=True)


if __name__ == "__main__":
    main()
