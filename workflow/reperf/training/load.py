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
from pathlib import Path

import pynvml

from reperf.machine import gpu_handles
from reperf.records.run_record import Load
from reperf.training.telemetry import handle_of

SECONDS_BEFORE = 0.5
_BUSY = (1, 2, 3, 6, 7, 8)
"""Words of a CPU's line in /proc/stat: user, nice, system, irq, softirq, and steal, which is what
other guests of the same host took."""


class Watch:
    """Watches this machine's CPUs.

    Args:
        used: the numbers or UUIDs of the GPUs that the run will have.
        statistics: the kernel's file of what each CPU has done.
        pause: waits for so many seconds.
    """

    def __init__(
        self,
        used: Sequence[str] = (),
        statistics: Path = Path("/proc/stat"),
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._statistics = statistics
        begun = self._now()
        pause(SECONDS_BEFORE)
        self._begun = self._now()
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
        during = _share_of_others(self._begun, self._now()) if ours else None
        return self._load.model_copy(update={"during": during})

    def _now(self) -> tuple[float, float, float] | None:
        """Seconds that the CPUs were busy, that our processes took of these, and that they had.

        None where the kernel does not say.
        """
        try:
            may = os.sched_getaffinity(0)
            lines = [line.split() for line in self._statistics.read_text("ascii").splitlines()]
            cpus = [words for words in lines if _number(words) in may]
            ticks = sum(int(words[at]) for words in cpus for at in _BUSY)
        except (AttributeError, OSError, ValueError, IndexError):  # the first: not on Linux
            return None
        busy = ticks / os.sysconf("SC_CLK_TCK")
        own = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        ours = sum(one.ru_utime + one.ru_stime for one in own)
        return (busy, ours, time.monotonic() * len(cpus)) if busy else None


def _number(words: Sequence[str]) -> int | None:
    """The number of the CPU that a line of /proc/stat is of; None: of none, or of all."""
    named = words[0].removeprefix("cpu") if words else ""
    return int(named) if named.isdecimal() else None


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
