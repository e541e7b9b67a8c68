"""The recipes by which every framework trains: all of them by one interface, then each alone."""

from argparse import Namespace
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from reperf.systems.workloads import load_workloads
from trainers.contract import recipe as contract
from trainers.contract import weights
from trainers.contract.driver import Work
from trainers.recipes import alexnet, resnet50, vgg16

from tests.helpers.shapes import (
    TINY_BERT,
    TINY_GPT2,
    TINY_LLAMA,
    TINY_TRANSFORMER,
    TINY_WORD2VEC,
)

BUILT = {
    workload.recipe_file.stem: workload
    for workload in load_workloads().values()
    if workload.recipe_file.exists()
}
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


of_images = pytest.mark.parametrize(
    "name", [name for name, workload in BUILT.items() if workload.data == "images"]
)


def test_a_recipe_says_all_that_engines_ask(name):
    recipe = module_of(name)
    assert [part for part in contract.INTERFACE if not hasattr(recipe, part)] == []
    recipe.check(SMALL[name])


def test_weights_have_the_sizes_that_the_shape_gives_them_and_one_made_alone_is_that_among_all(
    name,
):
    recipe, flags, among_all = module_of(name), flags_of(name), start_of(name)
    sizes = recipe.weight_shapes(flags.shape)
    assert {key: array.shape for key, array in among_all.items()} == sizes
    assert {array.dtype for array in among_all.values()} == {np.dtype(np.float32)}
    count = contract.parameters(recipe, flags.shape)
    assert sum(array.size for array in among_all.values()) == count
    small = {key: size for key, size in sizes.items() if np.prod(size) < 10**6}
    for key, size in reversed(small.items()):
        alone = weights.initial_weight(recipe, flags, key, size)
        assert np.array_equal(alone, among_all[key])


def synthetic(name: str, **changes: object) -> list[np.ndarray]:
    flags = flags_of(name, **changes)
    return [*weights.synthetic_batch(module_of(name), flags, changes.get("rank", 0))]


@pytest.mark.parametrize("name", DIGESTS)
def test_start_weights_and_batches_are_the_same_on_every_machine(name):
    start, batch = weights.digest(start_of(name).values()), weights.digest(synthetic(name))
    assert (start, batch) == DIGESTS[name]
    others = weights.initial_weights(module_of(name), flags_of(name, seed=2))
    assert any(not np.array_equal(array, start_of(name)[key]) for key, array in others)


def test_for_a_proof_no_weight_is_nothing_but_zeros(name):
    """It would hide mistakes in it, or in what it multiplies."""
    weights = start_of(name, proof=True)
    assert [key for key, array in weights.items() if not array.any()] == []


def test_ranks_and_seeds_have_synthetic_batches_of_their_own(name):
    assert all(map(np.array_equal, synthetic(name), synthetic(name)))
    for other in ({"rank": 1}, {"seed": 2}):
        assert not np.array_equal(synthetic(name)[0], synthetic(name, **other)[0])


@of_images
def test_synthetic_images_are_bytes_with_labels_and_too_small_ones_are_refused(name):
    images, labels = synthetic(name)
    size = SMALL[name]["image_size"]
    assert (images.shape, images.dtype) == ((2, size, size, 3), np.uint8)
    assert (labels.shape, labels.dtype) == ((2,), np.int64)
    with pytest.raises(ValueError, match=rf"image_size.*{size - 1}; allowed: {size} or more"):
        module_of(name).check({"image_size": size - 1})


@pytest.mark.parametrize(
    ("recipe", "count"), [(resnet50, 25_557_032), (vgg16, 138_357_544), (alexnet, 61_100_840)]
)
def test_the_model_is_the_published_one(recipe, count):
    assert contract.parameters(recipe, {"image_size": 224}) == count


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
