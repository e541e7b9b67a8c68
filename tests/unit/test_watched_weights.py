"""What a proof says about weights: how far each has come, whatever the framework's layout."""

from types import SimpleNamespace

import numpy as np
import pytest
from trainers.contract.weights import Watched, digest, length


def watched(read, *, proof: bool = True, rank: int = 0) -> Watched:
    return Watched(SimpleNamespace(flags=SimpleNamespace(proof=proof), rank=rank), read)


def test_a_change_is_that_of_arrays_which_a_framework_overwrites():
    held = [np.zeros((2, 2), np.float32), np.ones(3, np.float32)]
    weights = watched(lambda: iter(held))
    held[0] += np.float32([[3, 0], [0, 4]])
    assert weights.changes() == [5.0, 0.0]
    assert weights.digest() == digest(held)


def test_a_transposed_weight_has_the_same_change():
    start, end = np.random.RandomState(1).random_sample((2, 30, 20)).astype(np.float32)
    told = []
    for turned in (np.transpose, np.asarray):
        held = [turned(start).copy()]
        weights = watched(lambda held=held: held)
        held[0] = turned(end)
        told += weights.changes()
    assert told[0] == pytest.approx(told[1], rel=1e-12)


@pytest.mark.parametrize("so", [{"proof": False}, {"rank": 1}])
def test_only_the_first_rank_of_a_proof_tells_changes(so):
    weights = watched(lambda: [np.ones(2, np.float32)], **so)
    assert weights.changes() is None
    assert weights.digest() == digest([np.ones(2)])


def test_a_length_of_many_small_numbers_loses_none():
    assert length(np.full(10**7, 1e-3, np.float32)) == pytest.approx(10**3.5 * 1e-3, rel=1e-6)
