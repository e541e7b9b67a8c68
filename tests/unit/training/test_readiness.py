"""What else a machine does: before the first run of a call, which may wait, and beside each run."""

import logging
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.records.run_record import Load
from reperf.training import load, readiness
from reperf.training.load import Watch
from reperf.training.readiness import QUIET_LOOKS, begin_or_wait, look, make_ready

from tests.helpers.waiting import wait_until

WORK = "other work takes 83 % of the CPUs' time"
BUSY, IDLE = (WORK, True), ("", False)
BESIDE = f"this machine is busy: {WORK}. Numbers measured beside it {{}}; --config on_busy=wait "
WAITS = [
    f"this machine is busy: {WORK}; waiting until that ends, as on_busy asks",
    f"still waiting: {WORK}",
    "this machine is idle after 0 min; the runs begin",
]


@pytest.mark.parametrize(
    ("on_busy", "looks", "said"),
    [
        ("wait", [IDLE], []),
        ("go", [BUSY], [BESIDE.format("are not usable")]),
        ("go", [(WORK, False)], [BESIDE.format("get a mark")]),
        # It stays idle for some time, and says now and then that it is not yet.
        ("wait", [BUSY] * 31 + [IDLE, BUSY] + [IDLE] * QUIET_LOOKS, WAITS),
    ],
)
def test_a_call_says_that_the_machine_is_busy_and_goes_on_or_waits(caplog, on_busy, looks, said):
    caplog.set_level(logging.WARNING)
    left, pauses = iter(looks), []
    begin_or_wait(on_busy, lambda: next(left), pauses.append)
    assert (next(left, None), len(pauses)) == (None, len(looks) - 1)
    lines = [record.getMessage() for record in caplog.records]
    assert [line[: len(start)] for line, start in zip(lines, said, strict=True)] == said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_kill_end_the_wait_in_one_line(number):
    with pytest.raises(ReperfError, match=f"stopped while waiting for other work to end: {WORK}"):
        begin_or_wait("wait", lambda: BUSY, lambda _: signal.raise_signal(number))


@pytest.mark.parametrize(
    ("before", "processes", "found"),
    [
        (None, None, IDLE),
        (0.05, 0, IDLE),
        (0.06, 0, (WORK.replace("83", "6"), False)),
        (0.83, 2, (f"{WORK} and 2 processes compute on its GPUs", True)),
    ],
)
def test_more_than_a_twentieth_of_the_cpus_or_a_process_on_a_gpu_is_other_work(
    monkeypatch, before, processes, found
):
    seen = Load(average=1.0, before=before, gpu_processes=processes)
    monkeypatch.setattr(load, "Watch", lambda _: SimpleNamespace(load=lambda *, all_descend: seen))
    assert look([]) == found


@pytest.mark.parametrize(("rules", "looks"), [(["measure", "train"], 1), (["measure"], 0)])
def test_only_a_call_that_trains_looks(monkeypatch, rules, looks):
    suite = {"name": "a", "workload": "resnet50", "precision": "fp32", "systems": ["pytorch"]}
    report = load_report({"device": "cpu", "suites": [suite | {"batch_size": 8}]})
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=name)) for name in rules]
    seen = []
    monkeypatch.setattr(readiness, "look", lambda gpus: seen.append(gpus) or IDLE)
    make_ready(report, SimpleNamespace(dag=SimpleNamespace(needrun_jobs=lambda: jobs)))
    assert seen == [[]] * looks
    assert "on_busy" not in report.model_dump(by_alias=True)


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
    found = watched.load(all_descend=True)
    assert (found.during, found.stolen) == (0, 0)
    write(seen, user=100, steal=10**6)  # what other guests of the same host took is said, too
    found = watched.load(all_descend=True)
    assert (found.during, found.stolen) == (1, 1)
    assert watched.load(all_descend=False).during is None


@pytest.mark.parametrize(
    ("share", "kinds"), [(1, "user nice system irq softirq steal"), (0, "idle iowait guest")]
)
def test_before_a_run_all_work_is_that_of_others(seen, share, kinds):
    for kind in kinds.split():
        write(seen, user=100)
        counted = {"user": 100} | {kind: 10**6}
        watch = Watch((), lambda _, counted=counted: write(seen, **counted))
        assert watch.load(all_descend=True).before == share, kind


def test_a_kernel_that_does_not_say_leaves_it_open(seen):
    for _ in range(2):
        seen.write_text("") if seen.stat().st_size else seen.unlink()
        found = Watch((), lambda _: None).load(all_descend=True)
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
    assert watched.load(all_descend=True).throttled == 0
    say(name, text.format(10**12))
    assert watched.load(all_descend=False).throttled is None
    assert watched.load(all_descend=True).throttled == 1
    watched = Watch((), lambda _: None)
    wait_until(lambda: watched._clock, "the clocks to be read")
    assert watched.load(all_descend=True).mhz == pytest.approx(2600 - CPUS[0] / 1000)
