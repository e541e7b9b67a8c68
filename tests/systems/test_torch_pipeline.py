"""torch.distributed.pipelining and fully_shard train what one process and what DDP train."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.systems.trainer import losses, on_ranks, step_log

STEPS = Path(__file__).with_name("steps.py")
ALEXNET = {"workload": "alexnet", "batch_size": 4}

pytestmark = pytest.mark.xdist_group("pytorch")


@pytest.fixture
def steps_of(trainer_of, tmp_path):
    """What a number of ranks found: by case and rank, losses and weights by name.

    A case is the flags of a proof's three steps. Its `first` is what is said before the first one.
    """

    def found(ranks, cases):
        said = {name: [*flags, "--proof"] for name, flags in cases.items()}
        said |= {f"{name} first": flags for name, flags in cases.items()}
        asked = json.dumps(said), str(tmp_path)
        trainer_of("pytorch").said(*on_ranks(ranks, STEPS, *asked))
        return {
            name: [dict(np.load(tmp_path / f"{name}.{rank}.npz")) for rank in range(ranks)]
            for name in said
        }

    return found


@pytest.fixture
def staged(trainer_of):
    """The flags of ranks in a pipeline."""

    def flags(*pipeline, variant=None, **more):
        parallel = {"pipeline": pipeline, **more}
        asked = {"parallel": parallel, "topology": f"1n{sum(pipeline)}g", "variant": variant}
        return trainer_of("torch-pipeline").flags(**ALEXNET, **asked)

    return flags


def farthest(array, other):
    """How far two arrays differ; pytest's approx takes minutes for millions of weights."""
    return np.abs(array - other).max()


def test_every_schedule_trains_exactly_what_one_process_does(steps_of, staged, trainer_of):
    found = steps_of(
        2,
        {
            "alone": trainer_of("pytorch").flags(**ALEXNET),
            "1f1b": staged(1, 1, micro_batches=4),
            **{
                name: staged(1, 1, variant=name) for name in ("gpipe", "interleaved", "zero-bubble")
            },
        },
    )
    for name, ranks in found.items():
        wanted = found["alone first" if "first" in name else "alone"][0]
        for held in ranks:
            for key, values in held.items():
                assert farthest(values, wanted[key]) < 1e-6, (name, key)
    held = [set(rank) - {"losses"} for rank in found["interleaved"]]
    assert {"conv1.weight", "conv4.weight"} <= held[0]
    assert not held[0] & held[1]


@pytest.mark.weekly
def test_replicas_of_the_first_stage_share_the_last_exactly(steps_of, staged, trainer_of):
    """What two ranks of DDP train on is what two replicas of a first stage do."""
    data = steps_of(2, {"data": trainer_of("pytorch").flags(**ALEXNET)})["data"]
    for rank, held in enumerate(steps_of(3, {"hybrid": staged(2, 1)})["hybrid"]):
        own = held.pop("losses")
        read = [data[rank]] if rank < 2 else data
        assert own == pytest.approx(np.mean([one["losses"] for one in read], 0), abs=1e-6)
        for key, values in held.items():
            assert farthest(values, data[0][key]) < 1e-6, (rank, key)
    assert "fc1.weight" in held


@pytest.mark.weekly
def test_a_run_counts_by_its_first_stage_and_its_parameters_by_all(trainer_of):
    _, log = trainer_of("torch-pipeline").train_well(
        **ALEXNET, variant="zero-bubble", parallel={"pipeline": [1, 1], "micro_batches": 4}
    )
    said, steps = step_log(log)
    assert (said["global_batch_size"], steps[-1]["samples"]) == (4, 24)
    assert len(set(said["weight_digests"])) == len(said["peak_memory_bytes"]) == 2
    assert losses(log, 0) == pytest.approx(losses(log, 1), abs=1e-6)
    # Dropout on four images lets it rise again, in one process too.
    assert min(losses(log, 0)) < said["loss_without_dropout"] - 2


@pytest.mark.weekly
def test_shards_train_what_data_parallel_ranks_do_on_records(trainer_of, records):
    read = {"input": "tfrecord", "data": str(records("tfrecord")), "iterations": 3}
    read["more_flags"] = ("--proof",)
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


POLICIES = """
import json, torch
from trainers.frameworks.torch.sharded import _policy
models = [torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1)]
types = [torch.bfloat16, torch.float32]
print(json.dumps([str(_policy(model, one).param_dtype) for model in models for one in types]))"""


def test_weights_of_shards_travel_in_16_bits_where_no_batch_norm_wants_more(trainer_of):
    assert trainer_of("fsdp").answer(POLICIES) == ["torch.bfloat16", "None", "None", "None"]


@pytest.mark.weekly
@pytest.mark.parametrize("workload", ["bert-base", "gpt2-124m"])
def test_gradients_are_clipped_by_the_norm_of_all_shards(steps_of, trainer_of, workload):
    of_it = {"workload": workload, "batch_size": 4}
    data = trainer_of("pytorch").flags(**of_it)
    shards = trainer_of("fsdp").flags(**of_it, parallel={"shard": 2})
    found = steps_of(
        2,
        {
            "data": data,
            "shards": shards,
            "whole": [*shards, "--shard=1"],
            "compiled": [*shards, "--compile"],
            "unclipped": [*data, "--no-clip"],
        },
    )
    for rank, wanted in enumerate(found["data"]):
        for name in ("shards", "whole", "compiled"):
            assert found[name][rank]["losses"] == pytest.approx(wanted["losses"], abs=1e-5), name
        first, own = (found[f"{name} first"][rank]["losses"] for name in ("data", "shards"))
        assert own == pytest.approx(first, abs=1e-5)
        assert abs(found["unclipped"][rank]["losses"] - wanted["losses"]).max() > 1e-3
    for key, weight in found["data"][0].items():
        if key != "losses":
            whole = np.concatenate([rank[key] for rank in found["shards"]])
            assert farthest(whole, weight) < 1e-5, key
            assert farthest(found["whole"][0][key], weight) < 1e-5, key
