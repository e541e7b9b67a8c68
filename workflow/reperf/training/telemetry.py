"""Power and utilisation of the GPUs while a run trains, through NVML."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean

import pynvml

from reperf.machine import gpus
from reperf.records import Power

_SAMPLE_SECONDS = 0.5


class GpuMeter:
    """Samples all GPUs of this machine from a thread of its own."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._watts: list[float] = []
        self._percent: list[float] = []
        self._joules = 0.0

    @property
    def power(self) -> Power | None:
        """What was measured; None where there was no GPU to measure."""
        if not self._watts:
            return None
        return Power(
            mean_watts=fmean(self._watts),
            energy_joules=self._joules,
            mean_utilisation_percent=fmean(self._percent),
        )

    def _sample(self, used: int) -> None:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(used)]

        def millijoules() -> int:
            return sum(map(pynvml.nvmlDeviceGetTotalEnergyConsumption, handles))

        start = millijoules()
        while not self._stop.wait(_SAMPLE_SECONDS):
            self._watts.append(sum(map(pynvml.nvmlDeviceGetPowerUsage, handles)) / 1000)
            busy = [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
            self._percent.append(fmean(busy))
        self._joules = (millijoules() - start) / 1000
        pynvml.nvmlShutdown()


@contextmanager
def gpu_meter(used: int) -> Iterator[GpuMeter]:
    """Measure the first `used` GPUs of this machine while the block runs."""
    meter = GpuMeter()
    if used == 0 or not gpus():
        yield meter
        return
    thread = threading.Thread(target=meter._sample, args=(used,), daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        meter._stop.set()
        thread.join(timeout=5)
