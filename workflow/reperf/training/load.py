"""What else the machine of rank 0 did, before a run and during it.

Before a run, all that its CPUs do is other work. During it, other work is what the kernel counts
for these CPUs, less what it counts for this process and its descendants, each of which has been
waited for in the end. A list of processes would miss short ones, and those of other users.

What holds the CPUs back is counted by the kernel, too: heat, and the quotas of control groups. Only
their clock has to be sampled.

Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files";
Documentation/scheduler/sched-bwc.rst for version 1; Documentation/admin-guide/pm/cpufreq.rst;
arch/x86/kernel/cpu/mce/therm_throt.c.
"""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pynvml

from reperf.machine import gpu_handles
from reperf.records.run_record import Load
from reperf.training.telemetry import handle_of

SECONDS_BEFORE = 0.5
SECONDS_BETWEEN = 1.0
"""Between two looks at the CPUs' clock, each of which takes some microseconds a CPU."""
SYSTEM = Path("/sys")
SELF = Path("/proc/self/cgroup")
_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""What a CPU does; "steal" is what other guests of the same host took."""


class Watch:
    """Watches the CPUs of this machine that this process may use.

    Args:
        used: the numbers or UUIDs of the GPUs that the run will have.
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
        self._held = _held_back()
        self._clock: list[float] = []
        self._ended = threading.Event()
        threading.Thread(target=self._watch_clock, daemon=True).start()

    def load(self, *, ours: bool) -> Load:
        """What was seen up to now; the end of the watch.

        Args:
            ours: whether all that the run started descends from this process; if not, nobody can
                tell its work from that of others, nor what held it back.
        """
        self._ended.set()
        mhz = sum(self._clock) / len(self._clock) if self._clock else None
        seen: dict[str, float | None] = {"mhz": mhz}
        if ours:
            ended = _now()
            seen["during"] = _share_of_others(self._begun, ended)
            seen["stolen"] = _share_stolen(self._begun, ended)
            seen["throttled"] = _share_held(self._held, _held_back())
        return self._load.model_copy(update=seen)

    def _watch_clock(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN):
            if mhz := max(_clocks(), default=None):
                self._clock.append(mhz)


def _now() -> tuple[float, float, float, float] | None:
    """Seconds that the CPUs were busy, that our processes and other guests took, and that they had.

    None where the kernel does not say.
    """
    try:
        every = psutil.cpu_times(percpu=True)
        cpus = [every[number] for number in os.sched_getaffinity(0)]
        busy = sum(getattr(cpu, kind) for cpu in cpus for kind in _BUSY)
        stolen = sum(cpu.steal for cpu in cpus)
    # Not on Linux; or some CPU is switched off, so that places in the list are no numbers.
    except (AttributeError, IndexError, OSError):
        return None
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ours = sum(used.ru_utime + used.ru_stime for used in usages)
    return (busy, ours, stolen, time.monotonic() * len(cpus)) if busy else None


_Times = tuple[float, ...] | None


def _share_of_others(begun: _Times, ended: _Times) -> float | None:
    if begun is None or ended is None:
        return None
    busy, ours, _, had = (after - before for before, after in zip(begun, ended, strict=True))
    return _share(busy - ours, had)


def _share_stolen(begun: _Times, ended: _Times) -> float | None:
    return _share(ended[2] - begun[2], ended[3] - begun[3]) if begun and ended else None


def _share_held(begun: _Times, ended: _Times) -> float | None:
    """The largest share of the time in which any one thing held the CPUs back."""
    if not begun or not ended or len(begun) != len(ended):
        return None
    *held, took = (after - before for before, after in zip(begun, ended, strict=True))
    return max((_share(seconds, took) or 0.0 for seconds in held), default=None)


def _share(part: float, whole: float) -> float | None:
    return round(min(max(part / whole, 0.0), 1.0), 4) if whole > 0 else None


def _held_back() -> tuple[float, ...]:
    """Seconds that quotas held each CPU back, a control group each, then heat; then the time."""
    cpus = sorted(os.sched_getaffinity(0))
    quotas = [seconds / len(cpus) for seconds in _by_quota()]
    heat = [
        int(milliseconds) / 1000
        for cpu in cpus
        for kind in ("core", "package")
        if (milliseconds := _text(_cpu(cpu) / f"thermal_throttle/{kind}_throttle_total_time_ms"))
    ]
    return (*quotas, *heat, time.monotonic())


def _by_quota() -> Iterator[float]:
    """Seconds that the CPUs' quota held back, together, of this process's control groups."""
    for line in _text(SELF).splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = SYSTEM / "fs/cgroup" / ("cpu" if controllers else "")
        group = root / name.lstrip("/")
        for folder in (group, *group.parents):  # its own quota, or that of one around it
            counted = dict(
                part
                for line in _text(folder / "cpu.stat").splitlines()
                if len(part := line.split()) == 2
            )
            if "throttled_usec" in counted or "throttled_time" in counted:
                micro, nano = (
                    int(counted.get(key, 0)) for key in ("throttled_usec", "throttled_time")
                )
                yield micro / 1e6 + nano / 1e9
            if folder == root:
                break


def _clocks() -> Iterator[float]:
    """The clocks of the CPUs that this process may use, MHz."""
    for cpu in os.sched_getaffinity(0):
        if kilohertz := _text(_cpu(cpu) / "cpufreq/scaling_cur_freq"):
            yield int(kilohertz) / 1000


def _cpu(number: int) -> Path:
    return SYSTEM / f"devices/system/cpu/cpu{number}"


def _text(file: Path) -> str:
    """What the kernel says in a file; "" where it does not."""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""


def _processes_on(used: Sequence[str]) -> int | None:
    """How many processes compute on some GPUs; None: on CPUs, or NVML does not say."""
    with gpu_handles() as there, suppress(pynvml.NVMLError):
        if used and there:
            seen = map(pynvml.nvmlDeviceGetComputeRunningProcesses, map(handle_of, used))
            return len({process.pid for processes in seen for process in processes})
    return None
