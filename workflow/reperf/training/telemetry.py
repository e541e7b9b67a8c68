"""Power and utilisation of the GPUs while a run trains, through NVML.

It meters the GPUs of this machine, which is the run's first node. A meter knows nothing about
iterations: it keeps samples, and afterwards those between the ends of the window count.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pynvml

from reperf.machine import gpus, visible_names
from reperf.training.record import Power

_SAMPLE_SECONDS = 0.5


class Reading(NamedTuple):
    """What all metered GPUs report, together."""

    joules: float
    """Energy used since some moment in the past."""
    percent: float
    """How busy they are, on average."""


class GpuMeter:
    """Samples GPUs from a thread of its own.

    Args:
        read: asks the GPUs; raises NVMLError when one does not answer.
        clock: in seconds, the one that the step log uses.
    """

    def __init__(
        self, read: Callable[[], Reading], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._read = read
        self._clock = clock
        self._samples: list[tuple[float, float, float]] = []

    def sample(self) -> None:
        """Take one sample."""
        self._samples.append((self._clock(), *self._read()))

    def sample_until(self, stop: threading.Event) -> None:
        """Take samples until told to stop, or until a GPU does not answer."""
        try:
            self.sample()
            while not stop.wait(_SAMPLE_SECONDS):
                self.sample()
            self.sample()
        except pynvml.NVMLError:
            return  # the samples end here: a window that ends later has no power

    def power_between(self, begin: float, end: float) -> dict[str, float] | None:
        """The mean power, the energy and the mean utilisation between two times.

        Returns:
            The fields of Power; None if the samples do not cover all of that time.
        """
        import numpy as np  # noqa: PLC0415 - runs without a GPU start sooner

        if not self._samples:
            return None
        times, joules, percent = np.array(self._samples).T
        if not times[0] <= begin < end <= times[-1]:
            return None
        energy = np.interp(end, times, joules) - np.interp(begin, times, joules)
        inside = times[(begin < times) & (times < end)]
        at = np.array([begin, *inside, end])
        busy = np.trapezoid(np.interp(at, times, percent), at) / (end - begin)
        return {
            "mean_watts": float(energy / (end - begin)),
            "energy_joules": float(energy),
            "mean_utilisation_percent": float(busy),
        }


@contextmanager
def gpu_meter(used: Sequence[str]) -> Iterator[GpuMeter | None]:
    """Meter GPUs of this machine while the block runs; yield None if there are none.

    Args:
        used: their numbers or UUIDs.
    """
    if not used or not gpus():
        yield None
        return
    pynvml.nvmlInit()
    stop = threading.Event()
    meter = GpuMeter(lambda: _read(used))
    thread = threading.Thread(target=meter.sample_until, args=(stop,), daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        stop.set()
        thread.join(timeout=5)
        pynvml.nvmlShutdown()


def used_gpus(environment: Mapping[str, str], count: int) -> tuple[str, ...]:
    """The first `count` GPUs that a process with these environment variables sees.

    Returns:
        Their UUIDs or numbers, as CUDA_VISIBLE_DEVICES names them.
    """
    names = visible_names(environment)
    return tuple(map(str, range(count))) if names is None else names[:count]


def power_of_window(
    meter: GpuMeter, window: tuple[int, int], ends: Mapping[int, float], node: str
) -> Power | None:
    """What was metered in the window.

    Args:
        window: the iterations whose ends begin and end it.
        ends: iteration -> its end in seconds, by the meter's clock.
        node: where the meter was.

    Returns:
        None if the run or its meter did not cover the window.
    """
    first, last = window
    if first not in ends or last not in ends:
        return None
    power: dict[str, Any] | None = meter.power_between(ends[first], ends[last])
    return power and Power(**power, nodes=(node,), first=first, last=last)


def _read(used: Sequence[str]) -> Reading:
    handles = [_handle(name) for name in used]
    joules = sum(map(pynvml.nvmlDeviceGetTotalEnergyConsumption, handles)) / 1000
    busy = [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
    return Reading(joules, sum(busy) / len(busy))


def _handle(name: str) -> Any:  # noqa: ANN401 - NVML's own
    if name.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    return pynvml.nvmlDeviceGetHandleByUUID(name)
