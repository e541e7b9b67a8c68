"""PipeDream's pipelines train what they say, and say who has died or hangs."""

import signal
from pathlib import Path

import numpy as np
import pytest
from reperf.systems.workloads import load_workloads

from tests.systems.trainer import limited_memory, losses, on_ranks, step_log

HERE = Path(__file__).parent
SHIFTED = f"""
import sys
sys.path.append({str(HERE)!r})
import kept_ranks
from trainers.frameworks.torch import pipedream
pipedream.Stage._renew = lambda stage: None
kept_ranks.main()
"""
"""A rank that changes weights which batches in flight have still to go backward through."""

pytestmark = pytest.mark.xdist_group("pytorch")


@pytest.fixture
def pipedream(trainer_of):
    return trainer_of("pipedream")


def flags_of(trainer, workload, pipeline):
    staged = {"topology": f"1n{sum(pipeline)}g", "parallel": {"pipeline": pipeline}}
    return trainer.flags("--proof", workload=workload, batch_size=4, iterations=4, **staged)


@pytest.mark.parametrize(
    ("workload", "pipeline", "within"),
    [
        ("alexnet", (2, 1), 0),
        # Batch norms, and a stage in the middle.
        pytest.param("resnet50", (1, 1, 1), 0, marks=pytest.mark.weekly),
        # gloo adds three numbers in an order of its own.
        pytest.param("alexnet", (3, 1), 1e-6, marks=pytest.mark.weekly),
        # Updates of the second stage are averaged, and fewer.
        pytest.param("alexnet", (1, 2), 0, marks=pytest.mark.weekly),
    ],
    ids=str,
)
def test_the_ranks_come_to_what_one_process_on_the_same_schedule_comes_to(
    pipedream, tmp_path, workload, pipeline, within
):
    flags, ranks = flags_of(pipedream, workload, pipeline), sum(pipeline)
    words = on_ranks(ranks, HERE / "kept_ranks.py", str(tmp_path / "of"), *flags)
    said = pipedream.said(*words)
    pipedream.said(str(HERE / "delayed_alone.py"), str(tmp_path / "one"), *flags)
    one = np.load(tmp_path / "one.npz")
    found = [np.load(tmp_path / f"of.{rank}.npz") for rank in range(ranks)]
    for mine in found:
        for name in mine.files:
            assert np.abs(mine[name] - one[name]).max() <= within, name
    assert {name for mine in found for name in mine.files} == {*one.files} - {"losses"}
    assert losses(said, 0) == pytest.approx(one["losses"].tolist(), abs=within)
    assert one["losses"][-1] < one["losses"][0]


@pytest.mark.weekly
def test_weights_that_change_between_forward_and_backward_are_refused(pipedream, tmp_path):
    program = tmp_path / "shifted.py"
    program.write_text(SHIFTED)
    flags = flags_of(pipedream, "alexnet", (1, 1))
    said = pipedream.python(*on_ranks(2, program, str(tmp_path / "of"), *flags))
    assert said.returncode != 0
    assert (
        ":::REFUSED rank 0 (stage 0): weights have changed since batch 1 went forward through them"
    ) in said.stdout


@pytest.mark.weekly
def test_a_pipeline_is_trained_as_a_report_asks_for_it(pipedream):
    """Its classifier is of full width, in a stage of one rank."""
    record, log = pipedream.train_well(
        workload="alexnet",
        topology="1n3g",
        batch_size=2,
        parallel={"pipeline": [2, 1]},
        more_flags=("--proof",),
    )
    said, steps = step_log(log)
    assert said["parameters"] == load_workloads()["alexnet"].parameters_of(record.run.shape)
    assert said["global_batch_size"] == 4
    assert [step["samples"] for step in steps] == [4 * number for number in range(1, 7)]
    first, other, last = said["weight_digests"]
    assert first == other != last
    assert min(said["weight_changes"]) > 0
    assert len(said["peak_memory_bytes"]) == 3
    for rank in range(3):
        assert losses(log, rank)[-1] < losses(log, rank)[0]


@pytest.mark.weekly
def test_without_dropout_the_first_loss_is_that_of_data_parallel_training(pipedream, trainer_of):
    asked = {"workload": "alexnet", "batch_size": 2, "iterations": 1}
    _, log = pipedream.train_well(**asked, parallel={"pipeline": [1, 1]})
    whole = trainer_of("pytorch")
    found, wanted = (
        step_log(one)[0]["loss_without_dropout"]
        for one in (log, whole.said(*whole.program(**asked)))
    )
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.weekly
def test_a_stage_that_memory_cannot_hold_is_named(pipedream):
    with limited_memory(6):
        record, log = pipedream.train(batch_size=25_000, parallel={"pipeline": [1, 1]})
    assert record.status == "oom", log[-5000:]
    assert record.reason.startswith("rank 0 (stage 0): ")


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("system", "pipeline", "form"),
    [("pipedream", [1, 1, 1], "synthetic"), ("torch-pipeline", [2, 1], "tfrecord")],
)
def test_a_stage_that_dies_and_one_that_hangs_are_named(
    system, pipeline, form, trainer_of, records
):
    """One of batch norms."""
    trainer, last, replicas = trainer_of(system), pipeline[0], pipeline[0] > 1
    asked = {"topology": "1n3g", "parallel": {"pipeline": pipeline}, "iterations": 100_000}
    asked |= {"shape": {"image_size": 32}, "batch_size": 2, "input": form}
    asked |= {"data": str(records(form))} if form == "tfrecord" else {}
    with trainer.disturbed(signal.SIGKILL, rank=last, iteration=2):
        record, log = trainer.train(**asked)
    assert record.status == "failed", log[-5000:]
    assert record.reason.startswith(f"rank {last} (stage 1) was ended by SIGKILL; ")
    assert (losses(log, 0)[0] != losses(log, 1)[0]) == replicas  # each reads its own
    record, log = trainer.train_until_one_hangs(1, 2, others_say="waits for rank 1", **asked)
    assert record.status == "timeout", log[-5000:]
    assert f"; rank 1 (stage {0 if replicas else 1}) is waited for; " in record.reason
