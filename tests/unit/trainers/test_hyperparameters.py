"""The numbers by which every recipe trains, written down from the papers and scripts that say them.

None is read from the recipes. All frameworks take their numbers from there, and so do the models
that tests/systems/outside.py trains by hand: a wrong one would be trained everywhere in step.
Whole numbers are shapes; test_recipes.py holds them by counts of parameters and by digests.
"""

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from trainers import recipes
from trainers.contract.recipe import AdamW, Sgd, dropout_of, optimizer_of

from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_LLAMA, TINY_TRANSFORMER, TINY_WORD2VEC


class Numbers(NamedTuple):
    optimizer: Sgd | AdamW
    rates: dict[int, float]  # global batch -> learning rate, without a warm-up
    shape: dict[str, int]  # of which the weights are told
    decays: Callable[[str, tuple[int, ...]], bool]  # of a weight's name and size
    others: dict[str, float]  # all further numbers


def all_of(name, size):
    return True


def none(name, size):
    return False


def matrices(name, size):
    """Neither biases nor norms."""
    return len(size) == 2


IMAGES, CLICKS = {"image_size": 64}, {"rows": 26, "embedding": 2, "hidden": 4}
ALWAYS = {1: 1e-4, 32: 1e-4, 65536: 1e-4}
# nanoGPT, train.py, and torchtitan, models/llama3; epsilon: that of torch.optim.AdamW. Its 6e-4 is
# reached by way of a warm-up; our rate is without.
GPTS = AdamW(beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0), ALWAYS
# google-research/bert, modeling.py; GPT-2's model.py has the same deviation.
DEVIATION, MASKED = {"DEVIATION": 0.02}, {"MASKED": -10000.0}

NUMBERS = {
    "resnet50": Numbers(
        # DeepLearningExamples, ResNet-50 v1.5, as DLPerf runs it in MXNet and TensorFlow 1:
        # --mom 0.875 --wd 3.0517578125e-05. OneFlow's and Paddle's scripts have the same momentum.
        Sgd(momentum=0.875, weight_decay=3.0517578125e-05),
        # He et al. (2015), 3.4, at 256 images; that it falls with fewer is ours, in all three.
        {8: 0.003125, 128: 0.05, 255: 0.099609375, 256: 0.1, 8192: 0.1},
        IMAGES,
        lambda name, size: ".bn." not in name,  # DeepLearningExamples
        # Smoothing: DeepLearningExamples, OneFlow, Paddle; batch norm: torch.nn.BatchNorm2d, where
        # the momentum is called 0.1.
        {"LABEL_SMOOTHING": 0.1, "BATCH_NORM_EPSILON": 1e-5, "BATCH_NORM_MOMENTUM": 0.9},
    ),
    "vgg16": Numbers(  # Simonyan and Zisserman (2014), 3.1; decay: torchvision's reference training
        Sgd(momentum=0.9, weight_decay=5e-4),
        {8: 0.0003125, 128: 0.005, 256: 0.01, 8192: 0.01},
        *(IMAGES, all_of, {"DROPOUT": 0.5}),
    ),
    "alexnet": Numbers(  # Krizhevsky, One Weird Trick (2014), 5; dropout: (2012), 4.2
        Sgd(momentum=0.9, weight_decay=5e-4),
        {8: 0.000625, 64: 0.005, 128: 0.01, 8192: 0.01},
        *(IMAGES, all_of, {"DROPOUT": 0.5}),
    ),
    "bert": Numbers(
        # Devlin et al. (2018), A.2; epsilon, clip and decay: google-research/bert, optimization.py.
        AdamW(beta1=0.9, beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip=1.0),
        *(ALWAYS, TINY_BERT, matrices),
        # A.2; 3.1; modeling.py, by tf.contrib.layers.layer_norm; run_pretraining.py.
        MASKED
        | {
            "DROPOUT": 0.1,
            "MASKED_SHARE": 0.15,
            "NORM_EPSILON": 1e-12,
            "PREDICTIONS_EPSILON": 1e-5,
        },
    ),
    # openai/gpt-2, model.py.
    "gpt2": Numbers(*GPTS, TINY_GPT2, matrices, DEVIATION | {"NORM_EPSILON": 1e-5}),
    # meta-llama/llama-models, models/llama3/args.py and model.py; they stretch from 8,192 tokens.
    "llama": Numbers(
        *(*GPTS, TINY_LLAMA, matrices),
        DEVIATION | {"NORM_EPSILON": 1e-5, "THETA": 500000.0, "SLOW": 1.0, "FAST": 4.0},
    ),
    "transformer": Numbers(
        # Vaswani et al. (2017), 5.3, 5.4 and 3.5; epsilon of norms: FleetX's Transformer.
        AdamW(beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.0, clip=None),
        *(ALWAYS, TINY_TRANSFORMER, matrices),
        {"DROPOUT": 0.1, "LABEL_SMOOTHING": 0.1, "NORM_EPSILON": 1e-5, "SLOWEST": 1e4}
        | (DEVIATION | MASKED),
    ),
    # word2vec.c, which begins at 0.025 a pair. Servers see of a table only the rows of a batch.
    "word2vec": Numbers(
        Sgd(momentum=0.0, weight_decay=0.0),
        {1: 0.04, 100: 4.0, 10_000: 400.0},
        *(TINY_WORD2VEC, none, {"RATE_OF_PAIR": 0.04}),
    ),
    # Ours: FleetX trains with Adam, with which servers would not be exact.
    "ctr": Numbers(Sgd(momentum=0.0, weight_decay=0.0), {1: 0.1, 100_000: 0.1}, CLICKS, none, {}),
}

SHARED = {"__init__", "plain", "attention"}  # parts of several recipes


def test_each_recipes_numbers_stand_here():
    found = {path.stem for path in Path(recipes.__file__).parent.glob("*.py")} - SHARED
    assert found == {*NUMBERS}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_recipe_trains_by_the_numbers_of_its_sources(name):
    recipe, told = import_module(f"trainers.recipes.{name}"), NUMBERS[name]
    asked = told.optimizer

    def optimizer(proof, no_clip):
        return optimizer_of(recipe, Namespace(proof=proof, no_clip=no_clip))

    found = optimizer(proof=False, no_clip=False)
    assert (type(found), found) == (type(asked), asked)
    proof = 100.0 if isinstance(asked, AdamW) else 1.0  # so that it shows in a few losses
    assert optimizer(proof=True, no_clip=False) == asked._replace(weight_decay=proof)
    if isinstance(asked, AdamW):
        assert optimizer(proof=False, no_clip=True) == asked._replace(clip=None)
    rates = {batch: recipe.learning_rate(batch) for batch in told.rates}
    assert rates == pytest.approx(told.rates, rel=1e-9)
    numbers = {
        key: one for key, one in vars(recipe).items() if key.isupper() and type(one) is float
    }
    assert numbers == told.others
    assert dropout_of(recipe, Namespace(proof=False)) == told.others.get("DROPOUT", 0.0)
    assert dropout_of(recipe, Namespace(proof=True)) == 0.0
    sizes = recipe.weight_shapes(told.shape)
    assert {name: recipe.decays(name) for name in sizes} == {
        name: told.decays(name, size) for name, size in sizes.items()
    }
