"""How ranks share a model: shards of layers, micro-batches, stages of a pipeline in their order."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
from trainers.contract.backend import Place
from trainers.contract.delayed import Turns, depth, rounds
from trainers.contract.grid import Grid, grid_of
from trainers.contract.recipe import why_undivided
from trainers.contract.stages import micro_batches_of, stage_of
from trainers.contract.steplog import Refused
from trainers.recipes import llama

from tests.helpers.shapes import TINY_LLAMA


def grid(rank, world_size, shape=TINY_LLAMA, **asked):
    flags = Namespace(**{"shard": None, "tensor": None, "shape": shape} | asked)
    work = SimpleNamespace(flags=flags, recipe=llama)
    return grid_of(work, Place(rank, 0, world_size))


def test_ranks_of_a_layer_follow_each_other_read_alike_and_one_of_them_counts():
    ranks = [grid(rank, 8, shard=2, tensor=2) for rank in range(8)]
    assert {one.sizes for one in ranks} == {(2, 2, 2)}
    assert [one.share for one in ranks] == [(rank // 2, 4) for rank in range(8)]
    assert [one.counts for one in ranks] == [True, False] * 4
    parts = [f"shard {shard} tensor {tensor}" for shard in range(2) for tensor in range(2)]
    assert [one.part for one in ranks] == 2 * parts


@pytest.mark.parametrize(
    ("changes", "asked", "why"),
    [
        ({}, {"tensor": 2, "shard": 2}, None),
        ({"heads": 4, "key_heads": 1}, {"tensor": 2}, "tensor is 2, key_heads is 1"),
        ({"context": 31}, {"tensor": 2}, "tensor is 2, context is 31; allowed: what divides"),
        ({"vocabulary": 1001}, {"tensor": 2}, "tensor is 2, vocabulary is 1001"),
        ({}, {"shard": 3}, "shard is 3, hidden is 128"),
    ],
)
def test_what_ranks_share_must_be_divided_by_them(changes, asked, why):
    found = why_undivided(llama, TINY_LLAMA | changes, **asked)
    assert found is None if why is None else found.startswith(why)
    if why:
        with pytest.raises(Refused, match=why):
            grid(0, 12, TINY_LLAMA | changes, **asked)


def test_ranks_that_cannot_be_grouped_and_norms_that_drift_apart_are_refused():
    with pytest.raises(Refused, match="3 ranks; allowed: multiples of 2"):
        grid(0, 3, tensor=2)
    Grid(0, 1, 2, 2).check_alike(["a", "a", "b", "b"])
    with pytest.raises(Refused, match="rank 3 and rank 2 share layers, and their norms differ"):
        Grid(0, 1, 2, 2).check_alike(["a", "a", "b", "c"])


@pytest.mark.parametrize(
    ("batch_size", "stages", "asked", "count"),
    [
        (64, 2, None, 8),  # four for each stage
        (12, 2, None, 6),  # where they divide the batch
        (10, 2, None, 2),
        (64, 2, 2, 2),
        (8, 3, None, "of 8 cannot be cut into 3 micro-batches"),
        (8, 2, 5, "of 8 cannot be cut into 5 micro-batches"),
    ],
)
def test_a_batch_is_cut_as_asked_or_into_four_micro_batches_a_stage(
    batch_size, stages, asked, count
):
    flags = Namespace(batch_size=batch_size, pipeline=(1,) * stages, micro_batches=asked)
    if isinstance(count, int):
        assert micro_batches_of(flags) == count
        return
    with pytest.raises(ValueError, match=count):
        micro_batches_of(flags)


# Stages of an asynchronous pipeline.
PIPELINES = [(1, 1), (7, 1), (1, 1, 1), (2, 2, 1, 1), (1, 3), (3, 2), (3, 1, 2), (1, 2, 3, 4)]
ITERATIONS = 5


def orders(pipeline):
    """What each rank does: ("forward", 3) and so on, by the rank."""
    for rank in range(sum(pipeline)):
        turns = Turns(stage_of(rank, pipeline), ITERATIONS)
        done, forward = [], 0
        for turn in range(turns.batches):
            while forward <= min(turn + turns.depth, turns.batches - 1):
                done.append(("forward", turns.batch(forward)))
                forward += 1
            done += [("backward", turns.batch(turn)), ("update", turn)]
        yield done


def can(pipeline, stage, step, over):
    """Whether a rank's next step has all that it waits for."""
    what, number = step
    if what == "forward":
        return not stage or ("forward", number, stage - 1) in over
    if what == "backward":
        return stage + 1 == len(pipeline) or ("backward", number, stage + 1) in over
    batches = range(number * pipeline[stage], (number + 1) * pipeline[stage])
    return all(("backward", batch, stage) in over for batch in batches)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_no_stage_waits_for_ever_and_each_trains_on_all_batches(pipeline):
    ranks = [(stage_of(rank, pipeline), steps) for rank, steps in enumerate(orders(pipeline))]
    over, moved = set(), True
    while moved:
        moved = False
        for place, steps in ranks:
            while steps and can(pipeline, place.stage, steps[0], over):
                over.add((*steps.pop(0), place.stage))
                moved = True
    assert not [steps for _, steps in ranks if steps]
    for stage in range(len(pipeline)):
        seen = sorted(batch for what, batch, where in over if (what, where) == ("backward", stage))
        assert seen == list(range(rounds(pipeline, ITERATIONS) * pipeline[0]))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_no_logged_iteration_lacks_a_batch_to_send_forward(pipeline):
    for rank in range(sum(pipeline)):
        turns = Turns(stage_of(rank, pipeline), ITERATIONS)
        assert turns.until(ITERATIONS) + turns.depth <= turns.batches
        assert turns.until(0) == 0
    first = Turns(stage_of(0, pipeline), ITERATIONS)
    assert [first.until(one) for one in (1, 2, 3)] == [1, 2, 3]


def test_how_many_batches_are_under_way_and_how_much_smaller_rates_are():
    assert [depth((7, 1), stage) for stage in (0, 1)] == [1, 0]
    assert [depth((1, 1, 1), stage) for stage in (0, 1, 2)] == [2, 1, 0]
    assert [rounds((7, 1), 10), rounds((1, 1, 1), 10)] == [11, 12]
    last = Turns(stage_of(7, (7, 1)), 10)
    assert (last.batches, last.until(1), last.share) == (77, 7, 1 / 7)
