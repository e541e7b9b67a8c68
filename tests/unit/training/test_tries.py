"""Whether what lies in a run's folder is the planned run, and a try that nobody has taken up."""

import json
import shutil
from pathlib import Path

import pytest
from reperf.building.work_folder import CALL
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.plans.current import why_not_current
from reperf.plans.run_plan import RunPlan, plan_run
from reperf.training.places import Place
from reperf.training.record import RunRecord
from reperf.training.slurm import JobEnd
from reperf.training.train import train
from reperf.training.tries import keep_lost, new_try, tell_of_slurm

from tests.helpers.runs import RUN, kept_run
from tests.helpers.step_logs import step_log

RECORD = RUN.folder / "run.json"


class Started(Exception):
    """A run would be trained now."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def planned(run: Run = RUN, **changes: object) -> RunPlan:
    """A run's plan, with some of its fields changed."""
    plan = plan_run(run, window=(40, 120), time_limit=60)
    return RunPlan(**dict(plan) | changes)


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
    folder, _ = new_try(RUN.folder, planned())
    shutil.rmtree(folder)
    return kept_run(folder, step_log(), **{"plan": planned().digest, **record})


def test_the_planned_run_is_taken_for_itself():
    assert why_not_current(planned(), None, None) is None
    kept_run(RUN.folder, step_log(), plan=planned().digest)
    assert why_not_current(planned(), None, None) == ""


SMALLER = RUN.model_copy(update={"shape": {"image_size": 96}})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": SMALLER}, "image_size is 64 by the run record, 96 by the configuration"),
        ({"cluster": {"variables": {}}}, "the cluster's settings have changed since"),
        ({"trainer": "b" * 64}, "the trainer has changed since"),
        ({"build": {"folder": ".envs/a", "recipe": "b"}}, "the build has changed since"),
        ({"launch": ("-m", "other")}, "the words that launch it have changed since"),
        ({"program": ("other.py",)}, "the trainer's flags have changed since"),
        ({"variables": {"A": "1"}}, "its environment variables have changed since"),
        ({"data": "b" * 64}, "the data set is another one"),
        (
            {"trainer": "b" * 64, "launch": ("-m", "other")},
            "the trainer has changed since; the words that launch it have changed since",
        ),
    ],
)
@pytest.mark.parametrize("place", ["plan.json", "tries/2/plan.json"])
def test_another_plan_is_told_by_what_it_says_otherwise(changes: dict, said: str, place: str):
    kept_run(RUN.folder, step_log(), plan=planned().digest)
    today = planned(**changes)
    assert why_not_current(today, None, None) == f"{RECORD}: is of another plan"
    (RUN.folder / "tries/2").mkdir(parents=True)
    (RUN.folder / "plan.json").write_text(today.text)
    (RUN.folder / place).write_text(planned().text)
    assert why_not_current(today, None, None) == f"{RECORD}: {said}"


@pytest.mark.parametrize("version", [1, 4])
def test_a_record_of_an_earlier_version_names_no_plan(version: int):
    kept_run(RUN.folder, step_log(), record_version=version)
    content = json.loads(RECORD.read_text())
    del content["plan"], content["call"]
    RECORD.write_text(json.dumps(content))
    assert why_not_current(planned(), None, None) == f"{RECORD}: is of another plan"


def test_a_data_set_that_was_made_again_otherwise_is_noticed(tmp_path: Path):
    manifest = tmp_path / "data/noticed/tfrecord/manifest.json"
    plan = planned(RUN.model_copy(update={"data": str(manifest.parent), "input": "tfrecord"}))
    made = {"run": plan.run, "plan": plan.digest, "data_sha256": "b" * 64}
    kept_run(RUN.folder, step_log(), **made)
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    assert why_not_current(plan, None, "c" * 64) == f"{RECORD}: the data set has changed since"
    leave_try(**made)
    assert trains(plan)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"run": 1}', '{"run": {}}', "[" * 99_999])
def test_what_is_no_record_is_left_to_measuring(content: str):
    kept_run(RUN.folder, step_log())
    RECORD.write_text(content)
    assert why_not_current(planned(), None, None) == ""


def test_a_try_holds_the_plan_that_it_is_of():
    folder, _ = new_try(RUN.folder, planned())
    assert RunPlan.read(folder / "plan.json") == planned()


@pytest.mark.parametrize(("call", "attempt"), [("", 1), ("host 1 2", 3)])
def test_only_the_tries_of_one_call_are_counted(call: str, attempt: int, monkeypatch):
    monkeypatch.setenv(CALL, call)
    for other in ("host 3 4", call, call):
        leave_try(status="failed", call=other)
    assert new_try(RUN.folder, planned())[1] == attempt


def test_a_try_that_ended_well_is_taken_up_where_the_workflow_was_killed():
    leave_try(status="failed")
    leave_try()
    assert not trains(planned())
    for name in ("train.log", "run.json"):
        assert (RUN.folder / name).read_bytes() == (RUN.folder / "tries/2" / name).read_bytes()


@pytest.mark.parametrize(
    "record", [{"status": "failed"}, {"plan": "b" * 64}, {"plan": ""}, {"log_sha256": "b" * 64}]
)
def test_no_other_try_is_taken_up(record: dict):
    leave_try()
    leave_try(**record)
    assert trains(planned())
    assert [path.name for path in RUN.folder.iterdir()] == ["tries"]


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


def test_a_lost_run_of_this_call_is_kept_and_no_other(monkeypatch):
    monkeypatch.setenv(CALL, "host 1 2")
    leave_try(status="failed", call="host 3 4")
    assert not keep_lost(RUN.folder)
    lost = leave_try(status="failed", call="host 1 2")
    assert keep_lost(RUN.folder)
    assert RECORD.read_bytes() == (lost / "run.json").read_bytes()
    assert not keep_lost(RUN.folder)


def test_without_what_a_search_finds_nothing_is_trained():
    with pytest.raises(ReperfError, match=r"results/largest/a/b/batch.json: "):
        train(planned(batch="results/largest/a/b/batch.json"), starts)
    assert not RUN.folder.exists()
