"""What else the machine of rank 0 did, before a run and during it.

Before a run, all that its CPUs do is other work. During it, other work is what the kernel counts
for these CPUs, less what it counts for this process and its descendants, each of which has been
waited for in the end. A list of processes would miss short ones, and those of other users.
"""

import os
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil
import pynvml

from reperf.machine import gpu_handles
from reperf.records.run_record import Load
from reperf.training.telemetry import handle_of

SECONDS_BEFORE = 0.5
_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""What a CPU does; "steal" is what other guests of the same host took."""


class Watch:
    """Watches the CPUs of this machine that this process may use.

    Args:
        used: the numbers or UUIDs of the GPUs that the run will have.
        pause: waits for so many seconds.
    """

    def __init__(
        self, used: Sequence[str] = (), pause: Callable[[float], None] = time.sleep
    ) -> None:
        begun = _now()
        pause(SECONDS_BEFORE)
        self._begun = _now()
        before = _share_of_others(begun, self._begun)
        self._load = Load(
            average=os.getloadavg()[0], before=before, gpu_processes=_processes_on(used)
        )

    def load(self, *, ours: bool) -> Load:
        """What was seen up to now.

        Args:
            ours: whether all that the run started were descendants of this process; if not, nobody
                can tell its work from that of others.
        """
        during = _share_of_others(self._begun, _now()) if ours else None
        return self._load.model_copy(update={"during": during})


def _now() -> tuple[float, float, float] | None:
    """Seconds that the CPUs were busy, that our processes took of these, and that they had.

    None where the kernel does not say.
    """
    try:
        every = psutil.cpu_times(percpu=True)
        cpus = [every[number] for number in os.sched_getaffinity(0)]
        busy = sum(getattr(cpu, kind) for cpu in cpus for kind in _BUSY)
    # Not on Linux; or some CPU is switched off, so that places in the list are no numbers.
    except (AttributeError, IndexError, OSError):
        return None
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ours = sum(used.ru_utime + used.ru_stime for used in usages)
    return (busy, ours, time.monotonic() * len(cpus)) if busy else None


def _share_of_others(
    begun: tuple[float, float, float] | None, ended: tuple[float, float, float] | None
) -> float | None:
    if begun is None or ended is None:
        return None
    busy, ours, had = (after - before for before, after in zip(begun, ended, strict=True))
    return round(min(max((busy - ours) / had, 0.0), 1.0), 4) if had > 0 else None


def _processes_on(used: Sequence[str]) -> int | None:
    """How many processes compute on some GPUs; None: on CPUs, or NVML does not say."""
    with gpu_handles() as there, suppress(pynvml.NVMLError):
        if used and there:
            seen = map(pynvml.nvmlDeviceGetComputeRunningProcesses, map(handle_of, used))
            return len({process.pid for processes in seen for process in processes})
    return None
