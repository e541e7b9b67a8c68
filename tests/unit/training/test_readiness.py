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
    monkeypatch.setattr(load, "Watch", lambda used: SimpleNamespace(load=lambda *, ours: seen))
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
