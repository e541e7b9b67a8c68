"""What a proof says about weights: how far each has come, whatever the framework's layout."""

from types import SimpleNamespace

import numpy as np
import pytest
from trainers.contract.backend import Backend, Place
from trainers.contract.weights import Watched, digest, length


class Parts(Backend):
    """A rank among others, of which this says what they gather."""

    def __init__(self, *others: list):
        super().__init__(None, Place(0, 0, 1 + len(others)))
        self.others = others

    def gather(self, value):
        return [value, *self.others]


def watched(held: dict, *, proof: bool = True, names: str = "ab") -> Watched:
    flags = SimpleNamespace(proof=proof)
    return Watched(SimpleNamespace(flags=flags, names=[*names]), held.items)


def test_only_a_proof_tells_changes_also_of_arrays_which_a_framework_overwrites():
    held = {"a": np.zeros((2, 2), np.float32), "b": np.ones(3, np.float32)}
    weights, others = watched(held), watched(held, proof=False)
    held["a"] += np.float32([[3, 0], [0, 4]])
    assert weights.changes(Parts(), "all") == [5.0, 0.0]
    assert others.changes(Parts(), "all") is None
    assert weights.digest() == others.digest() == digest(held.values())


def test_a_transposed_weight_has_the_same_change():
    start, end = np.random.RandomState(1).random_sample((2, 30, 20)).astype(np.float32)
    told = []
    for turned in (np.transpose, np.asarray):
        held = {"a": turned(start).copy()}
        weights = watched(held, names="a")
        held["a"] = turned(end)
        told += weights.changes(Parts(), "all")
    assert told[0] == pytest.approx(told[1], rel=1e-12)


def test_changes_are_added_up_over_the_parts_of_a_model_and_not_over_their_replicas():
    held = {"a": np.zeros(1, np.float32)}
    weights = watched(held)
    held["a"] += 3
    others = ["first", [["a", 3.0]]], ["second", [["a", 4.0], ["b", 1.0]]]
    assert weights.changes(Parts(*others), "first") == [5.0, 1.0]


def test_a_length_of_many_small_numbers_loses_none():
    assert length(np.full(10**7, 1e-3, np.float32)) == pytest.approx(10**3.5 * 1e-3, rel=1e-6)
