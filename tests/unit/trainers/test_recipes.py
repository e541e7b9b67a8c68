"""The recipes by which every framework trains: all of them by one interface, then some alone."""

from argparse import Namespace
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from reperf.systems.workloads import load_workloads
from trainers.contract import recipe as contract
from trainers.contract import weights
from trainers.contract.driver import Work
from trainers.recipes import bert, llama, resnet50, vgg16

from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_LLAMA, TINY_TRANSFORMER, TINY_WORD2VEC

WORKLOADS = load_workloads()
BUILT = {one.recipe_file.stem: one for one in WORKLOADS.values() if one.recipe_file.exists()}
SMALL = {
    name: {key: dimension.least for key, dimension in workload.shape.items()}
    for name, workload in BUILT.items()
} | {
    "bert": TINY_BERT,
    "gpt2": TINY_GPT2,
    "llama": TINY_LLAMA,
    "word2vec": TINY_WORD2VEC,
    "transformer": TINY_TRANSFORMER,
}
"""For images the smallest shapes that recipes allow."""

# What numpy's generators give on Python 3.7 and on 3.11; tests/systems asks every environment.
DIGESTS = {
    "resnet50": ("4480a763abd4e945", "0e36d1af22539b6c"),
    "vgg16": ("6182bb4223789ef7", "0e36d1af22539b6c"),
    "alexnet": ("28f2e626542d9484", "d8234db847e1f6bd"),
    "bert": ("6c5dabedab9c9adf", "85e6553d83c98b35"),
    "ctr": ("aa9a486090bd754e", "cdc11c78f474f81c"),
    "gpt2": ("a45e6b6f35050124", "f4a17f292257fb7c"),
    "llama": ("4057444037248506", "f4a17f292257fb7c"),
    "word2vec": ("9c274f9c8f7cab58", "d1837efb6b3339b6"),
    "transformer": ("4f0fbea7a6f77a6a", "b1df84a6dd9d20f0"),
}


def module_of(name: str):
    return import_module(f"trainers.recipes.{name}")


def flags_of(name: str, **changes: object) -> Namespace:
    flags = {"shape": SMALL[name], "batch_size": 2, "seed": 1, "proof": False, "no_clip": False}
    flags |= {"precision": "fp32", "device": "cpu", "dynamic_loss_scale": False}
    return Namespace(**(flags | changes))


@cache
def start_of(name: str, **changes: object) -> dict[str, np.ndarray]:
    return dict(weights.initial_weights(module_of(name), flags_of(name, **changes)))


@pytest.fixture(params=BUILT)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def synthetic(name: str, **changes: object) -> list[np.ndarray]:
    flags = flags_of(name, **changes)
    return [*weights.synthetic_batch(module_of(name), flags, changes.get("rank", 0))]


def test_a_recipe_says_all_that_engines_ask_and_makes_weights_of_the_sizes_that_it_says(name):
    recipe, flags, among_all = module_of(name), flags_of(name), start_of(name)
    assert [part for part in contract.INTERFACE if not hasattr(recipe, part)] == []
    recipe.check(SMALL[name])
    sizes = recipe.weight_shapes(flags.shape)
    assert {key: array.shape for key, array in among_all.items()} == sizes
    assert {array.dtype for array in among_all.values()} == {np.dtype(np.float32)}
    count = contract.parameters(recipe, flags.shape)
    assert sum(array.size for array in among_all.values()) == count
    # One that is made alone is that among all.
    small = {key: size for key, size in sizes.items() if np.prod(size) < 10**6}
    for key, size in reversed(small.items()):
        assert np.array_equal(weights.initial_weight(recipe, flags, key, size), among_all[key])
    # A zero would hide mistakes in it, or in what it multiplies.
    proof = start_of(name, proof=True)
    assert [key for key, array in proof.items() if not array.any()] == []


@pytest.mark.parametrize("name", DIGESTS)
def test_start_weights_and_batches_are_the_same_on_every_machine_and_other_by_seed_and_rank(name):
    start, batch = weights.digest(start_of(name).values()), weights.digest(synthetic(name))
    assert (start, batch) == DIGESTS[name]
    others = weights.initial_weights(module_of(name), flags_of(name, seed=2))
    assert any(not np.array_equal(array, start_of(name)[key]) for key, array in others)
    for other in ({"rank": 1}, {"seed": 2}):
        assert not np.array_equal(synthetic(name)[0], synthetic(name, **other)[0])


@pytest.mark.parametrize("name", ["alexnet", "resnet50", "vgg16"])
def test_synthetic_images_are_bytes_with_labels_and_too_small_ones_are_refused(name):
    images, labels = synthetic(name)
    size = SMALL[name]["image_size"]
    assert (images.shape, images.dtype) == ((2, size, size, 3), np.uint8)
    assert (labels.shape, labels.dtype) == ((2,), np.int64)
    with pytest.raises(ValueError, match=rf"image_size.*{size - 1}; allowed: {size} or more"):
        module_of(name).check({"image_size": size - 1})


BASE = WORKLOADS["bert-base"].default_shape


@pytest.mark.parametrize(
    ("workload", "changes", "count"),
    [
        ("resnet50", {}, 25_557_032),
        ("vgg16", {}, 138_357_544),
        ("alexnet", {}, 61_100_840),
        ("bert-base", {}, 110_106_428),
        ("bert-base", {"vocabulary": 30528, "positions": 128}, 109_816_130),
        ("bert-large", {}, 336_226_108),
        # As transformers' LlamaForCausalLM has them at these shapes, on the meta device.
        ("llama3-1b", {}, 1_235_814_400),
        ("llama3-8b", {}, 8_030_261_248),
        ("llama3-70b", {}, 70_553_706_496),
    ],
)
def test_the_model_is_the_published_one(workload, changes, count):
    known = WORKLOADS[workload]
    shape = known.default_shape | changes
    recipe = module_of(known.recipe_file.stem)
    assert contract.parameters(recipe, shape) == known.parameters_of(shape) == count


@pytest.mark.parametrize("recipe", [resnet50, vgg16])
def test_weights_are_parted_by_their_decay_and_keep_their_order(recipe):
    flags = flags_of(recipe.__name__.rpartition(".")[2])
    names = list(recipe.weight_shapes(flags.shape))
    work = Work(recipe, flags, 8, {})
    groups = work.groups(work.named(names))
    parted = {group["weight_decay"]: group["params"] for group in groups}
    decayed = list(filter(recipe.decays, names))
    kept = [key for key in names if not recipe.decays(key)]
    assert parted == {recipe.OPTIMIZER.weight_decay: decayed} | ({0.0: kept} if kept else {})


CUTS = [slice(None), slice(0, 3), slice(3, None), slice(5, 6), slice(2, 2)]
PROOF = Namespace(seed=1, proof=True)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_a_part_of_a_start_weight_is_the_wholes_to_the_bit(name, monkeypatch):
    monkeypatch.setattr(weights, "AT_ONCE", 1000)  # so that it is drawn in many pieces
    recipe = module_of(name)
    for key, size in recipe.weight_shapes(SMALL[name]).items():
        whole = weights.initial_weight(recipe, PROOF, key, size)
        for rows, columns in zip(CUTS, CUTS[::-1], strict=True):
            index = (rows, columns)[: len(size)]
            part = weights.initial_weight(recipe, PROOF, key, size, index)
            assert np.array_equal(part, whole[index])
            assert part.dtype == np.float32


@pytest.mark.parametrize("size", [(1001, 5), (3, 5), (7, 3), (9, 2001)])
@pytest.mark.parametrize("at_once", [1, 1000])
def test_pieces_of_any_size_are_drawn_alike(size, at_once, monkeypatch):
    """The generator draws four bytes at a time, a number takes two: odd pieces would shift it."""
    monkeypatch.setattr(weights, "AT_ONCE", at_once)
    key, index = "layer1.ffn.out.weight", (slice(1, None), slice(1, 3))
    whole = weights.initial_weight(llama, PROOF, key, size)
    assert np.array_equal(weights.initial_weight(llama, PROOF, key, size, index), whole[index])


def test_slow_rotations_are_stretched_and_fast_ones_are_not():
    """Frequencies as transformers' LlamaRotaryEmbedding has them; four of 64, by version 5.23."""
    turns = llama.THETA ** -(np.arange(64) / 64)
    ratio = turns / llama.stretched(turns, 8)
    assert ratio[0] == ratio[20] == 1
    assert ratio[63] == pytest.approx(8)
    assert 1 < ratio[31] < 8
    assert np.all(np.diff(ratio) >= 0)


def test_what_bert_predicts_lies_inside_the_real_tokens():
    batch = bert.synthetic_batch(BASE, 64, np.random.RandomState(1))
    tokens, real, segments, positions, _, shares, following = batch
    assert bert.counts(batch) == {"tokens": int(np.count_nonzero(tokens))}
    assert set(real.sum(axis=1)) > {128}
    assert 0.9 < real.mean() < 0.97
    assert np.array_equal(tokens > 0, real == 1)
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
        assert 0 < own.min() <= own.max() < length - 1
        assert not places[count:].any()
    assert set(following) == {0, 1}


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
