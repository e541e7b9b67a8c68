"""Whether what lies in a run's folder is the planned run, and a try that nobody has taken up."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from reperf.building.work_folder import CALL
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.plans.run_plan import RunPlan, plan_run
from reperf.records.run_record import RunRecord
from reperf.training.places import Place
from reperf.training.slurm import JobEnd
from reperf.training.train import train
from reperf.training.tries import ended_try, keep_lost, new_try, tell_of_slurm

from tests.helpers.runs import RUN, kept_run
from tests.helpers.step_logs import step_log

RECORD = RUN.folder / "run.json"
BATCH = "results/largest/a/b/batch.json"


class Started(Exception):
    """A run would be trained now."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def planned(run: Run = RUN, batch: str | None = None) -> RunPlan:
    return plan_run(run, window=(40, 120), time_limit=60, batch=batch)


def starts(_run: Run) -> Place:
    raise Started


def trains(plan: RunPlan) -> bool:
    """Whether a run would be trained now."""
    try:
        train(plan, starts)
    except Started:
        return True
    return False


def leave_try(**record: object) -> Path:
    folder = new_try(RUN.folder, planned())
    assert RunPlan.read(folder / "plan.json") == planned()
    shutil.rmtree(folder)
    return kept_run(folder, step_log(), **{"plan": planned().digest, **record})


def test_a_data_set_that_was_made_again_otherwise_is_noticed(tmp_path: Path):
    manifest = tmp_path / "data/noticed/tfrecord/manifest.json"
    plan = planned(RUN.model_copy(update={"data": str(manifest.parent), "input": "tfrecord"}))
    made = {"run": plan.run, "plan": plan.digest, "data_sha256": "b" * 64}
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    leave_try(**made)
    assert trains(plan)
    leave_try(**made | {"data_sha256": sha256(manifest)})
    assert not trains(plan)


def test_a_batch_must_have_been_found_and_be_that_of_the_try():
    plan = planned(batch=BATCH)
    with pytest.raises(ReperfError, match=f"{BATCH}: "):
        train(plan, starts)
    assert not RUN.folder.exists()
    leave_try(plan=plan.digest)
    assert ended_try(plan, RUN.batch_size)
    assert not ended_try(plan, RUN.batch_size + 8)


@pytest.mark.parametrize(
    "record", [{}, {"status": "failed"}, {"plan": "b" * 64}, {"plan": ""}, {"log_sha256": "b" * 64}]
)
def test_the_last_try_is_taken_up_if_it_ended_well_and_no_other(record: dict):
    leave_try()
    last = leave_try(**record)
    assert trains(planned()) == bool(record)
    assert {path.name for path in RUN.folder.iterdir()} == (
        {"tries"} if record else {"tries", "train.log", "run.json"}
    )
    assert record or RECORD.read_bytes() == (last / "run.json").read_bytes()


def test_a_try_that_was_edited_is_not_taken_up_nor_any_where_a_run_is_asked_for_anew():
    record = leave_try() / "run.json"
    assert trains(planned().anew())
    record.write_text(record.read_text().replace('"exit_code": 0', '"exit_code": 1'))
    assert trains(planned())


FAILED = {"status": "failed", "reason": "no error"}


@pytest.mark.parametrize(
    ("record", "state", "ended"),
    [
        (FAILED, "TIMEOUT", "timeout: as Slurm says; no error"),
        (FAILED, "OUT_OF_MEMORY", "oom: as Slurm says; no error"),
        (FAILED, "NODE_FAIL", "failed: as Slurm says; no error"),
        # That of another job, and one that came to its own end, stay as they are.
        (FAILED | {"slurm_job": "8"}, "TIMEOUT", "failed: no error"),
        ({"status": "ok"}, "TIMEOUT", "ok: "),
        ({"status": "oom", "reason": "full"}, "TIMEOUT", "oom: full"),
    ],
)
def test_how_slurm_ended_a_job_is_told_by_the_try_that_ran_in_it(record, state, ended):
    folder = leave_try(**{"slurm_job": "7"} | record)
    with (folder / "train.log").open("a") as log:
        log.write("slurmstepd: error: it was cancelled\n")
    before = (folder / "run.json").read_bytes()
    tell_of_slurm(RUN.folder, "7", JobEnd(state, "as Slurm says"))
    told = RunRecord.read(folder / "run.json")
    assert f"{told.status}: {told.reason}" == ended
    assert ("Slurm" in ended) == ((folder / "run.json").read_bytes() != before)
    assert ("Slurm" in ended) == (told.log_sha256 == sha256(folder / "train.log"))


@pytest.mark.parametrize(
    ("record", "lost"),
    [
        ({}, True),
        ({"slurm_job": "7", "reason": "Slurm's job 7: NODE_FAIL; lost: ended"}, True),
        ({"call": "host 3 4"}, False),
        # The user has ended the call: locally, and on Slurm, where the job is about to end.
        ({"reason": "stopped from outside: SIGTERM"}, False),
        ({"slurm_job": "7"}, False),
    ],
)
def test_a_lost_run_of_this_call_is_kept_and_no_other(record: dict, lost: bool, monkeypatch):
    monkeypatch.setenv(CALL, "host 1 2")
    this = {"status": "failed", "reason": "lost: ended before its end", "call": "host 1 2"}
    last = leave_try(**this | record)
    assert keep_lost(RUN.folder) == lost
    assert not lost or RECORD.read_bytes() == (last / "run.json").read_bytes()
    assert not keep_lost(RUN.folder)


def test_a_try_that_is_told_to_end_around_its_launch_says_so(monkeypatch):
    monkeypatch.setattr("reperf.training.train._to_its_end", lambda *_: sys.exit(143))
    monkeypatch.setattr("reperf.training.train.start_of", lambda *_: start)
    monkeypatch.setattr("reperf.training.train.read_environment", lambda _: record.environment)
    record = RunRecord.read(kept_run(Path("other"), step_log()) / "run.json")
    words = SimpleNamespace(words=())
    start = SimpleNamespace(trainers=words, servers=None, variables={}, inherited={})
    place = SimpleNamespace(cluster=None, job="", nodes=("here",))
    with pytest.raises(SystemExit):
        train(planned(), lambda _run: place)
    reason = RunRecord.read(RUN.folder / "tries/1/run.json").reason
    assert reason == "stopped from outside: before its end could be recorded"
