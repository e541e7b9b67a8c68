"""BERT in the numbers on which all frameworks agree."""

import numpy as np
import pytest
from reperf.systems.workloads import load_workloads
from trainers.contract import recipe as contract
from trainers.recipes import bert

from tests.helpers.shapes import TINY_BERT

BASE = load_workloads()["bert-base"].default_shape


@pytest.fixture(scope="module")
def batch() -> list[np.ndarray]:
    return bert.synthetic_batch(BASE, 64, np.random.RandomState(1))


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 110_106_428),
        ({"vocabulary": 30528}, 110_111_042),
        ({"positions": 128}, 109_811_516),
        ({"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096}, 336_226_108),
        (TINY_BERT, 567_786),
    ],
)
def test_the_model_has_as_many_parameters_as_the_field_counts(changes, count):
    assert contract.parameters(bert, BASE | changes) == count


def test_what_is_predicted_lies_inside_the_real_tokens(batch):
    tokens, real, segments, positions, _, shares, following = batch
    assert set(real.sum(axis=1)) > {128}
    assert 0.9 < real.mean() < 0.97
    assert not tokens[real == 0].any()
    assert tokens[real == 1].all()
    assert tokens.max() < BASE["vocabulary"]
    assert (np.diff(real, axis=1) <= 0).all()
    assert not segments[real == 0].any()
    assert set(segments.max(axis=1)) == {1}
    assert not segments[:, :2].any()
    for row, (places, some) in enumerate(zip(positions, shares, strict=True)):
        count, length = int(some.sum()), real[row].sum()
        assert count == min(20, max(1, round(length * 0.15)))
        assert some[:count].all()
        own = places[:count]
        assert (np.diff(own) > 0).all()
        assert own.min() > 0
        assert own.max() < length - 1
        assert not places[count:].any()
    assert set(following) == {0, 1}


def test_tokens_are_counted_without_padding(batch):
    assert bert.counts(batch) == {"tokens": int(np.count_nonzero(batch[0]))}


def test_a_short_sequence_with_many_predictions_gets_those_that_fit():
    shape = TINY_BERT | {"sequence_length": 8, "max_predictions": 5}
    for seed in range(20):
        _, real, _, positions, ids, shares, _ = bert.synthetic_batch(
            shape, 16, np.random.RandomState(seed)
        )
        assert (shares.sum(axis=1) == 1).all()
        assert (positions[:, 0] < real.sum(axis=1) - 1).all()
        assert ids[:, 0].all()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"sequence_length": 65}, "sequence_length is 65; allowed: up to the 64 positions"),
        ({"max_predictions": 30}, "max_predictions is 30; allowed: up to 29 in a sequence_length"),
        ({"heads": 3}, "hidden is 128; allowed: a multiple of the 3 heads"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes, fault):
    with pytest.raises(ValueError, match=fault):
        bert.check(TINY_BERT | changes)
