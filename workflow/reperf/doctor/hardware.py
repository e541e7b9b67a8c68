"""What a node's kernel and NVML report about its CPUs, memory, disks, ports and GPUs.

The kernel's files are described in its own documentation: admin-guide/pm/cpufreq, cgroup-v2,
admin-guide/mm/transhuge and ABI/stable/sysfs-class-infiniband.
"""

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pynvml

from reperf.diagnosis import GpuState, Processor, Space
from reperf.machine import gpu_handles

SAMPLE_SECONDS = 0.5
BUSY_PERCENT = 20
"""Of one CPU: a process that uses this much counts as busy."""

_SETTINGS = {
    "transparent huge pages": "sys/kernel/mm/transparent_hugepage/enabled",
    "SMT": "sys/devices/system/cpu/smt/active",
    "NUMA balancing": "proc/sys/kernel/numa_balancing",
    "boost": "sys/devices/system/cpu/cpufreq/boost",
    "no turbo": "sys/devices/system/cpu/intel_pstate/no_turbo",
}
# Clocks are also low when a GPU is idle, which is harmless, or when somebody set them so, which the
# clocks themselves show; those reasons are left out.
_HARMFUL_REASONS = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync boost",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "heat (driver)",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "heat (hardware)",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
}


def processor(root: Path = Path("/")) -> Processor:
    """What decides how fast the CPUs are, and who else uses them.

    Args:
        root: the folder that holds sys/ and proc/.
    """
    frequencies = sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq"))
    governors = dict.fromkeys(_word(cpu / "scaling_governor") for cpu in frequencies)
    kilohertz = [
        (int(_word(cpu / "scaling_max_freq") or 0), int(_word(cpu / "cpuinfo_max_freq") or 0))
        for cpu in frequencies
    ]
    allowed, possible = min(kilohertz, default=(None, None))
    settings = {name: _word(root / path) for name, path in _SETTINGS.items()}
    return Processor(
        governor=", ".join(governors) or None,
        allowed_megahertz=allowed and allowed // 1000,
        possible_megahertz=possible and possible // 1000,
        quota=_quota(root),
        settings={name: value for name, value in settings.items() if value},
        load=psutil.getloadavg()[0],
        busy=_busy(),
    )


def space(folder: Path) -> Space:
    """Memory and disks, as far as a job in the folder could use them."""
    memory_disk = Path("/dev/shm")
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        free = None
    return Space(
        memory_available=psutil.virtual_memory().available,
        shared_memory_free=shutil.disk_usage(memory_disk).free if memory_disk.exists() else None,
        disk_free=free,
    )


def active_ports(root: Path = Path("/")) -> tuple[float, ...]:
    """Gigabits per second of each active port of InfiniBand and RoCE adapters."""
    return tuple(
        float(_word(port / "rate").partition(" ")[0] or 0)
        for port in sorted(root.glob("sys/class/infiniband/*/ports/*"))
        if _word(port / "state").endswith(" ACTIVE")
    )


def gpu_states() -> tuple[GpuState, ...]:
    """All GPUs of this machine; none where there is no NVIDIA driver."""
    with gpu_handles() as handles:
        return tuple(map(_gpu_state, handles))


def _gpu_state(gpu: Any) -> GpuState:  # noqa: ANN401 - NVML's handle
    def ask(question: Callable, *arguments: Any) -> Any:  # noqa: ANN401 - as NVML answers
        """NVML's answer; None if this GPU or driver has none."""
        try:
            return question(gpu, *arguments)
        except pynvml.NVMLError:
            return None

    mig = ask(pynvml.nvmlDeviceGetMigMode)
    reasons = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons) or 0
    processes = ask(pynvml.nvmlDeviceGetComputeRunningProcesses) or ()
    sm = pynvml.NVML_CLOCK_SM
    return GpuState(
        application_megahertz=ask(pynvml.nvmlDeviceGetApplicationsClock, sm),
        default_application_megahertz=ask(pynvml.nvmlDeviceGetDefaultApplicationsClock, sm),
        slowed_by=tuple(name for bit, name in _HARMFUL_REASONS.items() if reasons & bit),
        power_limit_watts=_watts(ask(pynvml.nvmlDeviceGetEnforcedPowerLimit)),
        default_power_limit_watts=_watts(ask(pynvml.nvmlDeviceGetPowerManagementDefaultLimit)),
        mig=None if mig is None else "on" if mig[0] else "off",
        processes=tuple(process.pid for process in processes),
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _word(path: Path) -> str:
    """A kernel file's text; if it lists choices, such as "always [madvise] never", the one set."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    chosen = re.search(r"\[(\w+)\]", text)
    return chosen[1] if chosen else text


def _quota(root: Path) -> float | None:
    """CPUs that this process gets from the strictest of its control groups."""
    groups = root / "sys/fs/cgroup"
    group = groups / _word(root / "proc/self/cgroup").rpartition("::/")[2]
    limits = [_word(folder / "cpu.max").split() for folder in (group, *group.parents)]
    return min(
        (int(limit[0]) / int(limit[1]) for limit in limits if limit and limit[0].isdigit()),
        default=None,
    )


def _busy() -> tuple[str, ...]:
    """Other processes that keep a CPU busy, the busiest first: "python (4711) 99 %"."""
    others = [process for process in psutil.process_iter(["name"]) if process.pid != os.getpid()]
    for process in others:
        _percent(process)  # from here on
    time.sleep(SAMPLE_SECONDS)
    percents = [(_percent(process), process) for process in others]
    busy = [(percent, process) for percent, process in percents if percent >= BUSY_PERCENT]
    busy.sort(key=lambda pair: -pair[0])
    return tuple(
        f"{process.info['name']} ({process.pid}) {percent:.0f} %" for percent, process in busy
    )


def _percent(process: psutil.Process) -> float:
    """Use of one CPU by a process since the last call, percent."""
    try:
        return process.cpu_percent()
    except psutil.Error:
        return 0.0
