"""Models that ranks share: parts of start weights, who counts, and which shares fit."""

from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest
from reperf.systems.workloads import load_workloads
from trainers.contract import backend, weights
from trainers.contract.grid import Grid, grid_of
from trainers.contract.recipe import parameters, why_undivided
from trainers.contract.steplog import Refused
from trainers.recipes import bert, gpt2, llama

from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_LLAMA

FLAGS = Namespace(seed=1, proof=True)
CUTS = [slice(None), slice(0, 3), slice(3, None), slice(5, 6), slice(2, 2)]


@pytest.mark.parametrize(
    ("recipe", "shape"), [(bert, TINY_BERT), (gpt2, TINY_GPT2), (llama, TINY_LLAMA)]
)
def test_a_part_of_a_start_weight_is_the_wholes_to_the_bit(recipe, shape, monkeypatch):
    monkeypatch.setattr(weights, "AT_ONCE", 1000)  # so that it is drawn in many pieces
    for name, size in recipe.weight_shapes(shape).items():
        whole = weights.initial_weight(recipe, FLAGS, name, size)
        for rows, columns in zip(CUTS, CUTS[::-1], strict=True):
            index = (rows, columns)[: len(size)]
            part = weights.initial_weight(recipe, FLAGS, name, size, index)
            assert np.array_equal(part, whole[index])
            assert part.dtype == np.float32


@pytest.mark.parametrize("size", [(1001, 5), (3, 5), (7, 3), (9, 2001)])
@pytest.mark.parametrize("at_once", [1, 1000])
def test_pieces_of_any_size_are_drawn_alike(size, at_once, monkeypatch):
    """The generator draws four bytes at a time, a number takes two: odd pieces would shift it."""
    monkeypatch.setattr(weights, "AT_ONCE", at_once)
    name = "layer1.ffn.out.weight"
    whole = weights.initial_weight(llama, FLAGS, name, size)
    index = slice(1, None), slice(1, 3)
    assert np.array_equal(weights.initial_weight(llama, FLAGS, name, size, index), whole[index])


@pytest.mark.parametrize(
    ("workload", "count"),
    [
        ("llama3-1b", 1_235_814_400),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
    ],
)
def test_llamas_have_the_published_number_of_parameters(workload, count):
    """As transformers' LlamaForCausalLM has them at these shapes, on the meta device."""
    known = load_workloads()[workload]
    assert parameters(llama, known.default_shape) == known.parameters == count


def grid(rank, world_size, shape=TINY_LLAMA, **asked):
    flags = Namespace(**{"shard": None, "tensor": None, "shape": shape} | asked)
    work = SimpleNamespace(flags=flags, recipe=llama)
    return grid_of(work, backend.Place(rank, 0, world_size))


def test_ranks_of_a_layer_follow_each_other_read_alike_and_one_of_them_counts():
    ranks = [grid(rank, 8, shard=2, tensor=2) for rank in range(8)]
    assert {one.sizes for one in ranks} == {(2, 2, 2)}
    assert [one.share for one in ranks] == [(rank // 2, 4) for rank in range(8)]
    assert [one.counts for one in ranks] == [True, False] * 4
    parts = [f"shard {shard} tensor {tensor}" for shard in range(2) for tensor in range(2)]
    assert [one.part for one in ranks] == 2 * parts


def test_tokens_that_a_layers_ranks_read_together_are_counted_once():
    class Alone(backend.Backend):
        def put(self, batch):
            return batch

    flags = Namespace(input="synthetic", shape=TINY_LLAMA, batch_size=4, seed=1, together=False)
    work, made = SimpleNamespace(flags=flags, recipe=llama), Alone(flags, backend.Place(0, 0, 1))
    counted = [
        backend.Feed(made, work, one.share, counts=one.counts).counted(3)["tokens"]
        for one in (grid(rank, 2, tensor=2) for rank in range(2))
    ]
    assert counted == [3 * 4 * TINY_LLAMA["context"], 0]


@pytest.mark.parametrize(
    ("changes", "asked", "why"),
    [
        ({}, {"tensor": 2, "shard": 2}, None),
        ({"heads": 4, "key_heads": 1}, {"tensor": 2}, "tensor is 2, key_heads is 1"),
        ({"context": 31}, {"tensor": 2}, "tensor is 2, context is 31; allowed: what divides"),
        ({}, {"tensor": 3}, "tensor is 3, context is 32"),
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


def test_slow_rotations_are_stretched_and_fast_ones_are_not():
    """Frequencies as transformers' LlamaRotaryEmbedding has them; four of 64, by version 5.23."""
    turns = llama.THETA ** -(np.arange(64) / 64)
    ratio = turns / llama.stretched(turns, 8)
    assert ratio[0] == ratio[20] == 1
    assert ratio[63] == pytest.approx(8)
    assert 1 < ratio[31] < 8
    assert np.all(np.diff(ratio) >= 0)
