"""What a node's kernel says about its CPUs, memory, disks and fabric.

The files are described in the kernel's own documentation: admin-guide/pm/cpufreq, cgroup-v2,
admin-guide/mm/transhuge and ABI/stable/sysfs-class-infiniband.
"""

import os
import re
import shutil
import time
from collections import Counter
from pathlib import Path

import psutil

from reperf.doctor.diagnosis import BusyProcess, FabricPort, Processor, Space

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


def processor(root: Path = Path("/")) -> Processor:
    """What decides how fast the CPUs are, and who else uses them.

    Args:
        root: the folder that holds sys/ and proc/.
    """
    frequencies = sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq"))
    governors = Counter(_word(cpu / "scaling_governor") for cpu in frequencies)
    now = [int(_word(cpu / "scaling_cur_freq") or 0) // 1000 for cpu in frequencies]
    limits = [
        (int(_word(cpu / "scaling_max_freq") or 0), int(_word(cpu / "cpuinfo_max_freq") or 0))
        for cpu in frequencies
    ]
    allowed, possible = min(limits, default=(None, None))
    settings = {name: _word(root / path) for name, path in _SETTINGS.items()}
    return Processor(
        governors=dict(governors) or None,
        megahertz=(min(now), max(now)) if now else None,
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
        free, inodes = shutil.disk_usage(folder).free, _inodes(folder)
    except OSError:
        free, inodes = None, None
    return Space(
        memory_available=psutil.virtual_memory().available,
        swap_used=psutil.swap_memory().used,
        shared_memory_free=shutil.disk_usage(memory_disk).free if memory_disk.exists() else None,
        disk_free=free,
        inodes_free=inodes,
    )


def fabric_ports(root: Path = Path("/")) -> tuple[FabricPort, ...]:
    """The ports of InfiniBand and RoCE adapters; none where there is no adapter."""
    return tuple(
        FabricPort(
            device=port.parents[1].name,
            port=int(port.name),
            state=_word(port / "state").rpartition(" ")[2],
            gigabits=float(_word(port / "rate").partition(" ")[0] or 0),
            link=_word(port / "link_layer"),
        )
        for port in sorted(root.glob("sys/class/infiniband/*/ports/*"))
    )


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
    own = _word(root / "proc/self/cgroup").rpartition("::/")[2]
    grants = [_grant(group) for group in (groups / own, *(groups / own).parents)]
    return min((grant for grant in grants if grant is not None), default=None)


def _grant(group: Path) -> float | None:
    quota, _, period = _word(group / "cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdigit() else None


def _busy() -> tuple[BusyProcess, ...]:
    """Other processes that keep a CPU busy, the busiest first."""
    others = [one for one in psutil.process_iter(["name"]) if one.pid != os.getpid()]
    for one in others:
        _percent(one)  # from here on
    time.sleep(SAMPLE_SECONDS)
    found = (
        BusyProcess(pid=one.pid, name=one.info["name"], percent=percent)
        for one in others
        if (percent := _percent(one)) >= BUSY_PERCENT
    )
    return tuple(sorted(found, key=lambda one: -one.percent))


def _percent(process: psutil.Process) -> float:
    """Use of one CPU by a process since the last call, percent."""
    try:
        return process.cpu_percent()
    except psutil.Error:
        return 0.0


def _inodes(folder: Path) -> int | None:
    """How many more files can be created; None where the file system has no such limit."""
    status = os.statvfs(folder)
    return status.f_favail if status.f_files else None
