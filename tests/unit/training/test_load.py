"""What else a machine did beside a run, as the kernel counts it."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from reperf.training import load
from reperf.training.load import Watch

BURN = "import time\nwhile time.process_time() < 0.3: pass"
HEAT = "thermal_throttle/core_throttle_total_time_ms"
KINDS = psutil.cpu_times()._fields
"""What a CPU's line in /proc/stat counts, in its order."""


def ours() -> float:
    """CPU seconds of this process and its children so far."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.fixture
def seen(tmp_path, monkeypatch) -> Path:
    """The kernel's file, on which 100 seconds have been counted."""
    write(tmp_path / "stat", user=100)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    return tmp_path / "stat"


def write(path: Path, **seconds: float) -> None:
    """Write what the kernel would of CPUs, one of which has done so much; idle time is no work.

    The kernel counts whole ticks: half a tick too many would be work of nobody.
    """
    allowed = sorted(os.sched_getaffinity(0))

    def line(cpu: object, **seconds: float) -> str:
        ticks = os.sysconf("SC_CLK_TCK")
        return f"cpu{cpu} " + " ".join(str(int(ticks * seconds.get(kind, 0))) for kind in KINDS)

    more = 10 * seconds["user"]
    lines = [line("", user=more)]
    for cpu in range(allowed[-1] + 2):
        idle = {"idle": more} if cpu in allowed else {"user": more}
        lines.append(line(cpu, **(seconds if cpu == allowed[0] else idle)))
    path.write_text("\n".join([*lines, "intr 1 2"]), encoding="ascii")


def test_the_work_of_the_run_is_not_that_of_others(seen):
    watch = Watch((), lambda _: None)
    begun = ours()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    write(seen, user=100 + ours() - begun)
    assert watch.load(ours=True).during == 0
    write(seen, user=100 + 10**6)
    assert watch.load(ours=True).during == 1
    assert watch.load(ours=False).during is None


@pytest.mark.parametrize(
    ("share", "kinds"), [(1, "user nice system irq softirq steal"), (0, "idle iowait guest")]
)
def test_before_a_run_all_work_is_that_of_others(seen, share, kinds):
    """Also what other guests of the same host took."""
    for kind in kinds.split():
        write(seen, user=100)
        counted = {"user": 100} | {kind: 10**6}
        watch = Watch((), lambda _, counted=counted: write(seen, **counted))
        assert watch.load(ours=True).before == share, kind


def test_a_kernel_that_does_not_say_leaves_it_open(seen):
    for _ in range(2):
        seen.write_text("") if seen.stat().st_size else seen.unlink()
        found = Watch((), lambda _: None).load(ours=True)
        assert (found.before, found.during, found.gpu_processes) == (None, None, None)


CGROUPS = {
    "0::/slice/job": ("fs/cgroup/slice/cpu.stat", "usage_usec 9\nthrottled_usec {micro}\n"),
    "1:cpu,cpuacct:/": ("fs/cgroup/cpu/cpu.stat", "nr_periods 1\nthrottled_time {micro}000\n"),
}


@pytest.mark.parametrize("line", CGROUPS)
def test_the_quota_of_a_control_group_or_of_one_around_it_holds_the_cpus_back(
    tmp_path, monkeypatch, line
):
    name, text = CGROUPS[line]
    monkeypatch.setattr(load, "SYSTEM", tmp_path)
    monkeypatch.setattr(load, "SELF", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text(f"{line}\n2:memory:/elsewhere\n")
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text.format(micro=0))
    watch = Watch((), lambda _: None)
    assert watch.load(ours=True).throttled == 0
    (tmp_path / name).write_text(text.format(micro=10**12))
    assert watch.load(ours=True).throttled == 1
    assert watch.load(ours=False).throttled is None


def test_heat_holds_the_cpus_back_and_their_clock_is_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "SYSTEM", tmp_path)
    monkeypatch.setattr(load, "SELF", tmp_path / "none")
    monkeypatch.setattr(load, "SECONDS_BETWEEN", 0.01)
    for cpu in os.sched_getaffinity(0):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}"
        for name, text in (("cpufreq/scaling_cur_freq", 2600000 - cpu), (HEAT, 0)):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(f"{text}\n")
    watch = Watch((), lambda _: None)
    (folder / HEAT).write_text(f"{10**9}\n")
    while not watch._clock:
        time.sleep(0.01)
    seen = watch.load(ours=True)
    fastest = 2600 - min(os.sched_getaffinity(0)) / 1000
    assert (seen.throttled, seen.mhz) == (1, pytest.approx(fastest))


def test_what_other_guests_took_is_said_beside_all_other_work(seen):
    watch = Watch((), lambda _: None)
    assert watch.load(ours=True).stolen == 0
    write(seen, user=100, steal=10**6)
    assert watch.load(ours=True).stolen == 1
