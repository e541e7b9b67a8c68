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
    """Watches the CPUs that this process may use, and counts other processes on the `used` GPUs."""

    def __init__(
        self, used: Sequence[str] = (), pause: Callable[[float], None] = time.sleep
    ) -> None:
        begun = _now()
        pause(SECONDS_BEFORE)
        self._begun = _now()
        busy, own, _, had = _passed(begun, self._begun)
        self._load = Load(
            average=os.getloadavg()[0],
            before=_share(busy - own, had),
            gpu_processes=_processes_on(used),
        )
        self._held_back = _held_back()
        self._clock: list[float] = []
        self._ended = threading.Event()
        threading.Thread(target=self._watch_clock, daemon=True).start()

    def load(self, *, all_descend: bool) -> Load:
        """What was seen up to now; the end of the watch.

        Args:
            all_descend: whether all that the run started descends from this process; if not,
                nobody can tell its work from that of others, nor what held it back.
        """
        self._ended.set()
        seen = {"mhz": sum(self._clock) / len(self._clock) if self._clock else None}
        if all_descend:
            busy, own, stolen, had = _passed(self._begun, _now())
            *held_back, seconds = _passed(self._held_back, _held_back())
            seen["during"], seen["stolen"] = _share(busy - own, had), _share(stolen, had)
            shares = (_share(each, seconds) for each in held_back)
            seen["throttled"] = max((one for one in shares if one is not None), default=None)
        return self._load.model_copy(update=seen)

    def _watch_clock(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN):
            files = (_cpu(cpu) / "cpufreq/scaling_cur_freq" for cpu in os.sched_getaffinity(0))
            kilohertz = map(int, filter(None, map(_text, files)))
            if mhz := max(kilohertz, default=0) / 1000:
                self._clock.append(mhz)


def _now() -> tuple[float, ...]:
    """Seconds that the CPUs were busy, that our processes and other guests took, and that they had.

    All of them are 0 where the kernel does not say.
    """
    try:
        every = psutil.cpu_times(percpu=True)
        cpus = [every[number] for number in os.sched_getaffinity(0)]
        busy = sum(getattr(cpu, kind) for cpu in cpus for kind in _BUSY)
        stolen = sum(cpu.steal for cpu in cpus)
    # Not on Linux; or some CPU is switched off, so that places in the list are no numbers.
    except (AttributeError, IndexError, OSError):
        busy = 0.0
    if not busy:
        return 0.0, 0.0, 0.0, 0.0
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own = sum(used.ru_utime + used.ru_stime for used in usages)
    return busy, own, stolen, time.monotonic() * len(cpus)


def _passed(begun: tuple[float, ...], ended: tuple[float, ...]) -> list[float]:
    """What was counted between two looks, the time last; nothing where they do not fit together."""
    if len(begun) != len(ended) or not begun[-1] or not ended[-1]:
        return [0.0] * len(ended)
    return [after - before for before, after in zip(begun, ended, strict=True)]


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
