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
    watched = Watch((), lambda _: None)
    begun = ours()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    write(seen, user=100 + ours() - begun)
    found = watched.load(ours=True)
    assert (found.during, found.stolen) == (0, 0)
    write(seen, user=100, steal=10**6)  # what other guests of the same host took is said, too
    found = watched.load(ours=True)
    assert (found.during, found.stolen) == (1, 1)
    assert watched.load(ours=False).during is None


@pytest.mark.parametrize(
    ("share", "kinds"), [(1, "user nice system irq softirq steal"), (0, "idle iowait guest")]
)
def test_before_a_run_all_work_is_that_of_others(seen, share, kinds):
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


CPUS = sorted(os.sched_getaffinity(0))
HEAT = f"devices/system/cpu/cpu{CPUS[0]}/thermal_throttle/core_throttle_total_time_ms"


@pytest.mark.parametrize(
    ("group", "name", "text"),
    [
        # The quota of a control group, or of one around it.
        ("0::/slice/job", "fs/cgroup/slice/cpu.stat", "usage_usec 9\nthrottled_usec {}"),
        ("1:cpu,cpuacct:/", "fs/cgroup/cpu/cpu.stat", "nr_periods 1\nthrottled_time {}000"),
        ("", HEAT, "{}"),
    ],
)
def test_what_holds_the_cpus_back_is_counted_and_their_clock_is_sampled(
    tmp_path, monkeypatch, group, name, text
):
    def say(name: str, text: object) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")

    monkeypatch.setattr(load, "SYSTEM", tmp_path)
    monkeypatch.setattr(load, "SELF", tmp_path / "cgroup")
    monkeypatch.setattr(load, "SECONDS_BETWEEN", 0.01)
    say("cgroup", f"{group}\n2:memory:/elsewhere" if group else "")
    for cpu in CPUS:
        say(f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", 2600000 - cpu)
    say(name, text.format(0))
    watched = Watch((), lambda _: None)
    assert watched.load(ours=True).throttled == 0
    say(name, text.format(10**12))
    assert watched.load(ours=False).throttled is None
    assert watched.load(ours=True).throttled == 1
    watched = Watch((), lambda _: None)
    while not watched._clock:
        time.sleep(0.01)
    assert watched.load(ours=True).mhz == pytest.approx(2600 - CPUS[0] / 1000)
