"""torch.distributed.pipelining and fully_shard train what one process and what DDP train."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.shapes import TINY_BERT
from tests.systems.trainer import losses, on_ranks, recipe_of, step_log

STEPS = Path(__file__).with_name("pipeline_steps.py")
PIPELINE = {"pipeline": "schedules.Pipeline"}
SHARDED = {"shard": "sharded.Sharded", "optimizer": "sharded.optimizer"}
ALEXNET = {"workload": "alexnet", "batch_size": 4}

pytestmark = pytest.mark.xdist_group("pytorch")


@pytest.fixture
def pipelines(trainer_of):
    return trainer_of("torch-pipeline")


def case(*flags, parts=(), steps=3, alone=False, proof=True):
    proof = ["--proof"] if proof else []
    flags = ["--batch-size=4", *flags, *proof]
    return {"flags": flags, "parts": dict(parts), "steps": steps, "alone": alone}


def stepped(trainer, folder, ranks, cases, *, workload="alexnet", shape=("image_size=64",)):
    """What a number of ranks found: by case and rank, losses and weights by name."""
    model = trainer.system.workloads[workload].model
    recipe = recipe_of(workload).__name__.rpartition(".")[2]
    for one in cases.values():
        one["flags"] += ["--shape", *shape]
    asked = {"workload": workload, "recipe": recipe, "model": model, "cases": cases}
    trainer.said(*on_ranks(ranks, STEPS, str(folder), json.dumps(asked)))
    return {
        name: [dict(np.load(folder / f"{name}.{rank}.npz")) for rank in range(ranks)]
        for name in cases
    }


def farthest(array, other):
    """How far two arrays differ; pytest's approx takes minutes for millions of weights."""
    return np.abs(array - other).max()


def test_every_schedule_trains_exactly_what_one_process_does(pipelines, tmp_path):
    pipeline = partial(case, "--pipeline", "1", "1", parts=PIPELINE)
    cases = {
        "one": case(alone=True),
        "1f1b": pipeline("--micro-batches=4"),
        "gpipe": pipeline("--schedule=gpipe"),
        "interleaved": pipeline("--schedule=interleaved"),
        "zero-bubble": pipeline("--schedule=zero-bubble"),
        "one first": case(alone=True, steps=0, proof=False),
        "1f1b first": pipeline(steps=0, proof=False),
        "zero-bubble first": pipeline("--schedule=zero-bubble", steps=0, proof=False),
    }
    found = stepped(pipelines, tmp_path, 2, cases)
    for name, ranks in found.items():
        wanted = found["one first" if "first" in name else "one"][0]
        for held in ranks:
            for key, values in held.items():
                assert farthest(values, wanted[key]) < 1e-6, (name, key)
    held = [set(rank) - {"losses"} for rank in found["interleaved"]]
    assert {"conv1.weight", "conv4.weight"} <= held[0]
    assert not held[0] & held[1]


@pytest.mark.weekly
def test_replicas_of_the_first_stage_share_the_last_exactly(pipelines, tmp_path):
    """What two ranks of DDP train on is what two replicas of a first stage do."""
    data = stepped(pipelines, tmp_path, 2, {"data": case()})["data"]
    hybrid = case("--pipeline", "2", "1", parts=PIPELINE)
    found = stepped(pipelines, tmp_path, 3, {"hybrid": hybrid})["hybrid"]
    for rank, held in enumerate(found):
        own = held.pop("losses")
        read = [data[rank]] if rank < 2 else data
        assert own == pytest.approx(np.mean([one["losses"] for one in read], 0), abs=1e-6)
        for key, values in held.items():
            assert farthest(values, data[0][key]) < 1e-6, (rank, key)
    assert "fc1.weight" in found[2]


def test_a_run_counts_by_its_first_stage_and_its_parameters_by_all(pipelines):
    _, log = pipelines.train_well(
        **ALEXNET, variant="zero-bubble", parallel={"pipeline": [1, 1], "micro_batches": 4}
    )
    said, steps = step_log(log)
    assert (said["global_batch_size"], steps[-1]["samples"]) == (4, 24)
    assert len(set(said["weight_digests"])) == len(said["peak_memory_bytes"]) == 2
    assert losses(log, 0) == pytest.approx(losses(log, 1), abs=1e-6)
    # Dropout on four images lets it rise again, in one process too.
    assert min(losses(log, 0)) < said["loss_without_dropout"] - 2


def test_shards_train_what_data_parallel_ranks_do_on_records(trainer_of, records):
    read = {"input": "tfrecord", "data": str(records("tfrecord")), "more_flags": ("--proof",)}
    ours, others = (
        trainer_of(name).train_well(**ALEXNET, **read, **changes)
        for name, changes in (("fsdp", {"parallel": {"shard": 2}}), ("pytorch", {}))
    )
    (said, _), (wanted, _) = (step_log(log) for _, log in (ours, others))
    for rank in range(2):
        assert losses(ours[1], rank) == pytest.approx(losses(others[1], rank), abs=1e-5)
    assert said["weight_changes"] == pytest.approx(wanted["weight_changes"], rel=1e-4)
    assert said["global_batch_size"] == 8
    assert len(set(said["weight_digests"])) == 2


def test_gradients_are_clipped_by_the_norm_of_all_shards(trainer_of, tmp_path):
    shape = [f"{name}={value}" for name, value in TINY_BERT.items()]
    shards = partial(case, parts=SHARDED)
    cases = {"data": case(), "shards": shards("--shard", "2"), "whole": shards("--shard", "1")}
    cases["unclipped"] = case("--no-clip")
    cases["data first"] = case(steps=0, proof=False)
    cases["shards first"] = shards("--shard", "2", steps=0, proof=False)
    found = stepped(trainer_of("fsdp"), tmp_path, 2, cases, workload="bert-base", shape=shape)
    for rank, wanted in enumerate(found["data"]):
        for name in ("shards", "whole"):
            assert found[name][rank]["losses"] == pytest.approx(wanted["losses"], abs=1e-5), name
        first, own = (found[f"{name} first"][rank]["losses"] for name in ("data", "shards"))
        assert own == pytest.approx(first, abs=1e-5)
        assert abs(found["unclipped"][rank]["losses"] - wanted["losses"]).max() > 1e-3
    for key, weight in found["data"][0].items():
        if key != "losses":
            whole = np.concatenate([rank[key] for rank in found["shards"]])
            assert farthest(whole, weight) < 1e-5, key
            assert farthest(found["whole"][0][key], weight) < 1e-5, key
