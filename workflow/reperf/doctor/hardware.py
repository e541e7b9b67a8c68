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

from reperf.machine import cores, gpu_handles
from reperf.number_format import gibibytes
from reperf.records.diagnosis import Verdict
from reperf.text import listed

Reading = tuple[str, bool]  # a setting or a state in words, and whether it is as it should be
ADVICE = {
    "CPU governor": "cpupower frequency-set --governor performance",
    "CPU clock": "raise scaling_max_freq",
    "CPU quota": "a quota pauses threads at work: ask for a CPU set instead",
    "other processes": "end them first; a load without a busy process is over, or hidden from you",
    "memory": "other processes hold the memory",
    "shared memory": "NCCL and data loaders use /dev/shm: give it more",
    "GPU clocks": "nvidia-smi --reset-applications-clocks",
    "GPU slowdown": "check its cooling and power supply",
    "GPU power limit": "raise it with nvidia-smi --power-limit",
    "GPU processes": "end these processes first",
    "GPU MIG": "a run needs whole GPUs",
}  # check of a node or of its GPUs -> what to do about a reading that is not as it should be
SPOILING = ("GPU MIG",)  # the checks whose bad readings are errors, not warnings
SAMPLE_SECONDS = 0.5
BUSY_PERCENT = 20  # of one CPU: a process that uses this much counts as busy
SHOWN_PROCESSES = 3
LEAST_SHARED_MEMORY = 2**30  # bytes of /dev/shm; containers have 64 MiB by default

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


def readings(root: Path = Path("/")) -> dict[str, Verdict]:
    """How a node is set, and who else uses it: check -> verdict, without what is unknown."""
    frequencies = sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq"))
    governors = ", ".join(dict.fromkeys(_word(cpu / "scaling_governor") for cpu in frequencies))
    kilohertz = [
        (int(_word(cpu / "scaling_max_freq") or 0), int(_word(cpu / "cpuinfo_max_freq") or 0))
        for cpu in frequencies
    ]
    allowed, possible = min(kilohertz, default=(None, None))
    memory = psutil.virtual_memory()
    known = {
        "CPU governor": _expected(governors, "performance") if governors else None,
        "CPU clock": _share(allowed and allowed // 1000, possible and possible // 1000, "MHz"),
        "CPU quota": _share(_quota(root), cores(), "CPUs"),
        "other processes": _others(),
        "memory": _room(memory.available, memory.total // 2),
    }
    memory_disk = Path("/dev/shm")
    if memory_disk.exists():
        known["shared memory"] = _room(shutil.disk_usage(memory_disk).free, LEAST_SHARED_MEMORY)
    return {check: _verdict(check, reading) for check, reading in known.items() if reading}


def _verdict(check: str, reading: Reading) -> Verdict:
    what, is_fine = reading
    if is_fine:
        return Verdict("ok", what)
    return Verdict("error" if check in SPOILING else "warning", what, ADVICE[check])


def _share(there: float | None, full: float | None, unit: str) -> Reading | None:
    if there is None or full is None:
        return None
    return f"{there:g} of {full:g} {unit}", there >= full


def _expected(text: str, usual: str) -> Reading:
    return text, text == usual


def _room(free: int, needed: int) -> Reading:
    # Nodes whose memory is not equally full share a row.
    if free >= needed:
        return f"at least {gibibytes(needed)} free", True
    return f"{gibibytes(free)} free; at least {gibibytes(needed)} needed", False


def settings(root: Path = Path("/")) -> dict[str, str]:
    """The kernel's settings that decide how fast programs run."""
    values = {name: _word(root / path) for name, path in _SETTINGS.items()}
    return {name: value for name, value in values.items() if value}


def disk_free(folder: Path) -> int | None:
    """Bytes that a job could write into a folder; None if the folder cannot be seen."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def active_ports(root: Path = Path("/")) -> tuple[float, ...]:
    """Gigabits per second of each active port of InfiniBand and RoCE adapters."""
    return tuple(
        float(_word(port / "rate").partition(" ")[0] or 0)
        for port in sorted(root.glob("sys/class/infiniband/*/ports/*"))
        if _word(port / "state").endswith(" ACTIVE")
    )


def gpu_readings() -> dict[str, Verdict]:
    """The same of this machine's GPUs: what is wrong with which, or what all of them are like."""
    with gpu_handles() as handles:
        gpus = [*map(_gpu_readings, handles)]
    verdicts = {}
    for check in ADVICE:
        readings = [
            (number, *reading) for number, gpu in enumerate(gpus) if (reading := gpu.get(check))
        ]
        wrong = [f"GPU {number} {what}" for number, what, is_fine in readings if not is_fine]
        alike = dict.fromkeys(what for _, what, _ in readings)
        if readings:
            verdicts[check] = _verdict(check, ("; ".join(wrong) or ", ".join(alike), not wrong))
    return verdicts


def _gpu_readings(gpu: Any) -> dict[str, Reading | None]:  # noqa: ANN401 - NVML's handle
    def ask(question: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401 - as NVML answers
        """NVML's answer; None if this GPU or driver has none."""
        try:
            return question(gpu, *arguments)
        except pynvml.NVMLError:
            return None

    mig = ask(pynvml.nvmlDeviceGetMigMode)
    reasons = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons) or 0
    slowed = ", ".join(name for bit, name in _HARMFUL_REASONS.items() if reasons & bit)
    running = ask(pynvml.nvmlDeviceGetComputeRunningProcesses) or ()
    processes = [str(process.pid) for process in running]
    clock = ask(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_SM)
    usual_clock = ask(pynvml.nvmlDeviceGetDefaultApplicationsClock, pynvml.NVML_CLOCK_SM)
    limit = _watts(ask(pynvml.nvmlDeviceGetEnforcedPowerLimit))
    usual_limit = _watts(ask(pynvml.nvmlDeviceGetPowerManagementDefaultLimit))
    return {
        "GPU clocks": _share(clock, usual_clock, "MHz"),
        "GPU slowdown": _expected(f"slowed by {slowed}" if slowed else "none", "none"),
        "GPU power limit": _share(limit, usual_limit, "W"),
        "GPU processes": _expected(", ".join(processes) or "none", "none"),
        "GPU MIG": None if mig is None else _expected("split by MIG" if mig[0] else "off", "off"),
    }


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


def _others() -> Reading:
    """Other processes that keep a CPU busy, the busiest first, and the load of the last minute."""
    others = [process for process in psutil.process_iter(["name"]) if process.pid != os.getpid()]
    for process in others:
        _percent(process)  # from here on
    time.sleep(SAMPLE_SECONDS)
    percents = [(_percent(process), process) for process in others]
    busy = sorted((pair for pair in percents if pair[0] >= BUSY_PERCENT), key=lambda pair: -pair[0])
    shown = [f"{process.info['name']} ({process.pid}) {percent:.0f} %" for percent, process in busy]
    load = psutil.getloadavg()[0]
    if shown or load > cores() / 2:
        busy_ones = listed(shown, SHOWN_PROCESSES) or "none busy"
        return f"{busy_ones}; load {load:.1f} on {cores()} CPUs", False
    return "none busy", True


def _percent(process: psutil.Process) -> float:
    """Use of one CPU by a process since the last call, percent."""
    try:
        return process.cpu_percent()
    except psutil.Error:
        return 0.0
