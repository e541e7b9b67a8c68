"""What else a machine did beside a run, as the kernel counts it."""

import os
import resource
import subprocess
import sys
from pathlib import Path

from reperf.training.load import Watch

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def ours() -> float:
    """CPU seconds of this process and its children so far."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def write(path: Path, seconds: float) -> None:
    """Write what the kernel would of CPUs that were busy for so long; idle ones count nothing."""
    cpus = sorted(os.sched_getaffinity(0))
    ticks = round(seconds * os.sysconf("SC_CLK_TCK"))
    lines = [f"cpu  {10 * ticks} 0 0 0 0 0 0 0 0 0", f"cpu{cpus[0]} {ticks} 0 0 9 9 0 0 0 0 0"]
    lines += [f"cpu{cpu} 0 0 0 {ticks} 9 0 0 0 0 0" for cpu in cpus[1:]]
    lines += [f"cpu{cpus[-1] + 1} {50 * ticks} 0 0 0 0 0 0 0 0 0", "intr 1 2"]
    path.write_text("\n".join(lines), encoding="ascii")


def test_the_work_of_the_run_is_not_that_of_others(tmp_path):
    seen = tmp_path / "stat"
    write(seen, 100)
    watch = Watch((), seen, lambda _: None)
    begun = ours()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    write(seen, 100 + ours() - begun)
    assert watch.load(ours=True).during == 0
    write(seen, 100 + 10**6)
    assert watch.load(ours=True).during == 1
    assert watch.load(ours=False).during is None


def test_before_a_run_all_work_is_that_of_others(tmp_path):
    seen = tmp_path / "stat"
    write(seen, 100)
    assert Watch((), seen, lambda _: write(seen, 10**6)).load(ours=True).before == 1
    assert Watch((), seen, lambda _: None).load(ours=True).before == 0


def test_a_kernel_that_does_not_say_leaves_it_open(tmp_path):
    for text in ("", "cpu0 a b\n", "cpu0 1\n"):
        (tmp_path / "stat").write_text(text, encoding="ascii")
        load = Watch((), tmp_path / "stat", lambda _: None).load(ours=True)
        assert (load.before, load.during, load.gpu_processes) == (None, None, None)
    assert Watch((), tmp_path / "none", lambda _: None).load(ours=True).before is None
