"""The order in which the stages of an asynchronous pipeline compute."""

import pytest
from trainers.contract.delayed import Turns, depth, rounds
from trainers.contract.stages import stage_of

PIPELINES = [(1, 1), (2, 1), (7, 1), (15, 1), (1, 1, 1), (2, 1, 1), (2, 2, 1, 1), (1, 3), (3, 2)]
PIPELINES += [(4, 3), (1, 3, 1), (3, 1, 2), (1, 2, 3, 4)]
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
