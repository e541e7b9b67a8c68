"""What else a machine did beside a run, as the kernel counts it."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
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
    """Write what the kernel would of CPUs, one of which has done so much; idle time is no work."""
    allowed = sorted(os.sched_getaffinity(0))

    def line(cpu: object, **seconds: float) -> str:
        ticks = os.sysconf("SC_CLK_TCK")
        return f"cpu{cpu} " + " ".join(str(round(ticks * seconds.get(kind, 0))) for kind in KINDS)

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
    ("share", "kinds"),
    [(1, "user nice system irq softirq steal"), (0, "idle iowait guest")],
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
        load = Watch((), lambda _: None).load(ours=True)
        assert (load.before, load.during, load.gpu_processes) == (None, None, None)
