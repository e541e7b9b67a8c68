"""Whether what lies in a run's folder is the planned run, and a try that nobody has taken up."""

import json
import shutil

import pytest
from reperf.config import Run
from reperf.training.tries import new_try, not_as_planned, take_up
from step_logs import step_log
from test_measure import RUN, kept_run

TRAINER = "a" * 64
CLUSTER = {"container": None, "variables": {"NCCL_DEBUG": "INFO"}}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def files() -> set[str]:
    return {path.name for path in RUN.folder.iterdir()}


def test_the_planned_run_is_taken_for_itself():
    assert not_as_planned(RUN, TRAINER, None) == ""
    kept_run(RUN.folder, step_log(), trainer=TRAINER)
    assert not_as_planned(RUN, TRAINER, None) == ""


def test_another_run_is_named_with_both_values():
    kept_run(RUN.folder, step_log(), trainer=TRAINER)
    other = RUN.model_copy(update={"shape": {"image_size": 96}})
    record = RUN.folder / "run.json"
    assert not_as_planned(other, TRAINER, None) == (
        f"{record}: image_size is 64 by the run record, 96 by the configuration"
    )
    assert not_as_planned(RUN, TRAINER, CLUSTER) == (
        f"{record}: the cluster's settings have changed since"
    )
    assert not_as_planned(RUN, "b" * 64, None) == f"{record}: the trainer has changed since"


def test_a_record_of_the_first_version_names_no_trainer():
    record = kept_run(RUN.folder, step_log(), record_version=1) / "run.json"
    content = json.loads(record.read_text())
    del content["trainer"], content["cluster"]
    record.write_text(json.dumps(content))
    assert not_as_planned(RUN, TRAINER, None) == not_as_planned(RUN, TRAINER, CLUSTER) == ""


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"run": 1}', '{"run": {}}', "[" * 99_999])
def test_what_is_no_record_is_left_to_measuring(content: str):
    kept_run(RUN.folder, step_log())
    (RUN.folder / "run.json").write_text(content)
    assert not_as_planned(RUN, TRAINER, None) == ""


def leave_try(run: Run = RUN, **record: object) -> None:
    RUN.folder.mkdir(parents=True, exist_ok=True)
    folder = new_try(RUN.folder)
    shutil.rmtree(folder)
    kept_run(folder, step_log(), run=run, **{"trainer": TRAINER, **record})


def test_a_try_that_ended_well_is_taken_up_where_the_workflow_was_killed():
    leave_try(status="failed")
    leave_try()
    take_up(RUN, TRAINER, None)
    for name in ("train.log", "run.json"):
        assert (RUN.folder / name).read_bytes() == (RUN.folder / "tries/2" / name).read_bytes()


@pytest.mark.parametrize(
    "record",
    [
        {"status": "failed"},
        {"run": RUN.model_copy(update={"seed": 9})},
        {"trainer": "b" * 64},
        {"cluster": CLUSTER},
    ],
)
def test_no_other_try_is_taken_up(record: dict):
    leave_try()
    leave_try(**record)
    take_up(RUN, TRAINER, None)
    assert files() == {"tries"}


def test_a_run_that_is_there_stays():
    kept_run(RUN.folder, step_log(), seconds=2.0)
    before = (RUN.folder / "run.json").read_bytes()
    leave_try()
    take_up(RUN, TRAINER, None)
    assert (RUN.folder / "run.json").read_bytes() == before
