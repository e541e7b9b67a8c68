"""A call looks whether the machine is busy before its first run, says so, and waits if asked to."""

import logging
from types import SimpleNamespace

import pytest
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.records.run_record import Load
from reperf.training import load, readiness
from reperf.training.readiness import QUIET_LOOKS, begin_or_wait, look, make_ready

WORK = "other work takes 83 % of the CPUs' time"
BUSY, IDLE = (WORK, True), ("", False)


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_call_on_an_idle_machine_says_nothing_and_waits_for_nothing(lines):
    begin_or_wait("wait", lambda: IDLE, pytest.fail)
    assert lines() == []


@pytest.mark.parametrize(
    ("spoils", "said"), [(True, "it are not usable"), (False, "it get a mark")]
)
def test_go_says_what_the_numbers_will_be_worth(lines, spoils, said):
    begin_or_wait("go", lambda: (WORK, spoils), pytest.fail)
    [line] = lines()
    assert line.startswith(f"this machine is busy: {WORK}. Numbers measured beside {said};")
    assert "--config on_busy=wait" in line


def test_wait_begins_once_the_machine_stays_idle_and_says_so_now_and_then(lines):
    looks = [BUSY] * 31 + [IDLE, BUSY] + [IDLE] * QUIET_LOOKS
    left, pauses = iter(looks), []
    begin_or_wait("wait", lambda: next(left), pauses.append)
    assert next(left, None) is None
    assert len(pauses) == len(looks) - 1
    first, still, last = lines()
    assert first.endswith("waiting until that ends, as on_busy asks")
    assert still == f"still waiting: {WORK}"
    assert last == "this machine is idle after 0 min; the runs begin"


def test_ctrl_c_ends_the_wait_in_one_line():
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(ReperfError, match=f"stopped while waiting for other work to end: {WORK}"):
        begin_or_wait("wait", lambda: BUSY, interrupted)


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
    watch = SimpleNamespace(load=lambda *, ours: seen)
    monkeypatch.setattr(load, "Watch", lambda used: watch)
    assert look([]) == found


@pytest.mark.parametrize(("rules", "looks"), [(["measure", "train"], 1), (["measure"], 0)])
def test_only_a_call_that_trains_looks(monkeypatch, rules, looks):
    suite = {"name": "a", "workload": "resnet50", "precision": "fp32", "systems": ["pytorch"]}
    report = load_report({"device": "cpu", "suites": [suite | {"batch_size": 8}]})
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=name)) for name in rules]
    seen = []
    monkeypatch.setattr(readiness, "look", lambda gpus: seen.append(gpus) or IDLE)
    dag = SimpleNamespace(needrun_jobs=lambda: jobs)
    make_ready(report, SimpleNamespace(dag=dag))
    assert seen == [[]] * looks
    assert "on_busy" not in report.model_dump(by_alias=True)
