"""The numbers by which every recipe trains, written down from the papers and scripts that say them.

None is read from the recipes. All frameworks take their numbers from there, and so do the models
that tests/systems/outside.py trains by hand: a wrong one would be trained everywhere in step.
Whole numbers are shapes; test_recipes.py holds them by counts of parameters and by digests.
"""

from argparse import Namespace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from trainers import recipes
from trainers.contract.recipe import AdamW, Sgd, dropout_of, optimizer_of

from tests.helpers.shapes import (
    TINY_BERT,
    TINY_GPT2,
    TINY_LLAMA,
    TINY_TRANSFORMER,
    TINY_WORD2VEC,
)

OPTIMIZERS = {
    # DeepLearningExamples, ResNet-50 v1.5, as DLPerf runs it in MXNet and TensorFlow 1:
    # --mom 0.875 --wd 3.0517578125e-05. OneFlow's and Paddle's scripts have the same momentum.
    "resnet50": Sgd(momentum=0.875, weight_decay=3.0517578125e-05),
    # Simonyan and Zisserman (2014), 3.1.
    "vgg16": Sgd(momentum=0.9, weight_decay=5e-4),
    # Krizhevsky, One Weird Trick (2014), 5.
    "alexnet": Sgd(momentum=0.9, weight_decay=5e-4),
    # Devlin et al. (2018), A.2; epsilon and clip: google-research/bert, optimization.py.
    "bert": AdamW(beta1=0.9, beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip=1.0),
    # nanoGPT, train.py; epsilon: that of torch.optim.AdamW.
    "gpt2": AdamW(beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0),
    # torchtitan, models/llama3 and components/optimizer.py: as GPT-2's in nanoGPT.
    "llama": AdamW(beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0),
    # Vaswani et al. (2017), 5.3.
    "transformer": AdamW(beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.0, clip=None),
    # word2vec.c.
    "word2vec": Sgd(momentum=0.0, weight_decay=0.0),
    # Ours: FleetX trains with Adam, with which servers would not be exact.
    "ctr": Sgd(momentum=0.0, weight_decay=0.0),
}

RATES = {  # global batch -> learning rate, from the first iteration to the last: without a warm-up
    # He et al. (2015), 3.4, at 256 images; that it falls with fewer is ours, in all three.
    "resnet50": {8: 0.003125, 128: 0.05, 255: 0.099609375, 256: 0.1, 8192: 0.1},
    "vgg16": {8: 0.0003125, 128: 0.005, 256: 0.01, 8192: 0.01},  # 3.1, at 256 images
    "alexnet": {8: 0.000625, 64: 0.005, 128: 0.01, 8192: 0.01},  # 5, at 128 images
    "bert": {1: 1e-4, 32: 1e-4, 4096: 1e-4},  # A.2; DLPerf's scripts have it, too
    # Ours: nanoGPT's 6e-4 and the Transformer's rates are reached by way of a warm-up.
    "gpt2": {1: 1e-4, 4096: 1e-4},
    "llama": {1: 1e-4, 4096: 1e-4},
    "transformer": {1: 1e-4, 65536: 1e-4},
    "word2vec": {1: 0.04, 100: 4.0, 10_000: 400.0},  # ours; word2vec.c begins at 0.025 a pair
    "ctr": {1: 0.1, 100_000: 0.1},  # ours
}

# google-research/bert, modeling.py; GPT-2's model.py has the same deviation.
DEVIATION, MASKED = {"DEVIATION": 0.02}, {"MASKED": -10000.0}
OTHERS = {
    "resnet50": {
        "LABEL_SMOOTHING": 0.1,  # DeepLearningExamples, OneFlow and Paddle
        "BATCH_NORM_EPSILON": 1e-5,  # torchvision's, by torch.nn.BatchNorm2d
        "BATCH_NORM_MOMENTUM": 0.9,  # likewise, where it is called 0.1
    },
    "vgg16": {"DROPOUT": 0.5},  # 3.1
    "alexnet": {"DROPOUT": 0.5},  # Krizhevsky et al. (2012), 4.2
    "bert": MASKED
    | {
        "DROPOUT": 0.1,  # A.2
        "NORM_EPSILON": 1e-12,  # modeling.py, by tf.contrib.layers.layer_norm
        "PREDICTIONS_EPSILON": 1e-5,  # run_pretraining.py
        "MASKED_SHARE": 0.15,  # 3.1
    },
    "gpt2": DEVIATION | {"NORM_EPSILON": 1e-5},  # openai/gpt-2, model.py
    # meta-llama/llama-models, models/llama3/args.py and model.py; they stretch from 8,192 tokens.
    "llama": DEVIATION | {"NORM_EPSILON": 1e-5, "THETA": 500000.0, "SLOW": 1.0, "FAST": 4.0},
    "transformer": DEVIATION
    | MASKED
    | {
        "DROPOUT": 0.1,  # 5.4
        "LABEL_SMOOTHING": 0.1,  # 5.4
        "NORM_EPSILON": 1e-5,  # Paddle's layer_norm, in FleetX's Transformer
        "SLOWEST": 1e4,  # 3.5
    },
    "word2vec": {"RATE_OF_PAIR": 0.04},  # as above
    "ctr": {},
}

IMAGES, CLICKS = {"image_size": 64}, {"rows": 26, "embedding": 2, "hidden": 4}
DECAYED = {  # a shape, and whether a weight of a name and a size decays
    "resnet50": (IMAGES, lambda name, size: ".bn." not in name),  # DeepLearningExamples
    "vgg16": (IMAGES, lambda name, size: True),  # torchvision's reference training
    "alexnet": (IMAGES, lambda name, size: True),
    # Neither biases nor layer norms: optimization.py, and nanoGPT's model.py.
    "bert": (TINY_BERT, lambda name, size: len(size) == 2),
    "gpt2": (TINY_GPT2, lambda name, size: len(size) == 2),
    "llama": (TINY_LLAMA, lambda name, size: len(size) == 2),
    "transformer": (TINY_TRANSFORMER, lambda name, size: len(size) == 2),
    # Servers see of a table only the rows that a batch has used.
    "word2vec": (TINY_WORD2VEC, lambda name, size: False),
    "ctr": (CLICKS, lambda name, size: False),
}

SHARED = {"__init__", "plain", "attention"}  # parts of several recipes


@pytest.fixture(params=OPTIMIZERS)
def recipe(request: pytest.FixtureRequest) -> ModuleType:
    return import_module(f"trainers.recipes.{request.param}")


def name_of(recipe: ModuleType) -> str:
    return recipe.__name__.rpartition(".")[2]


def test_each_recipes_numbers_stand_here():
    found = {path.stem for path in Path(recipes.__file__).parent.glob("*.py")} - SHARED
    assert found == {*OPTIMIZERS} == {*RATES} == {*OTHERS} == {*DECAYED}


def test_the_optimizer_is_that_of_the_source_but_for_a_proof_or_without_clipping(recipe):
    asked, flags = OPTIMIZERS[name_of(recipe)], Namespace(proof=False, no_clip=False)
    found = optimizer_of(recipe, flags)
    assert (type(found), found) == (type(asked), asked)
    proof = 100.0 if isinstance(asked, AdamW) else 1.0  # so that it shows in a few losses
    flags.proof = True
    assert optimizer_of(recipe, flags) == asked._replace(weight_decay=proof)


@pytest.mark.parametrize("name", [name for name, one in OPTIMIZERS.items() if type(one) is AdamW])
def test_clipping_is_left_out_where_it_is_asked_for(name):
    flags = Namespace(proof=False, no_clip=True)
    found = optimizer_of(import_module(f"trainers.recipes.{name}"), flags)
    assert found == OPTIMIZERS[name]._replace(clip=None)


def test_the_learning_rate_grows_with_the_batch_only_where_it_is_said(recipe):
    rates = RATES[name_of(recipe)]
    assert {batch: recipe.learning_rate(batch) for batch in rates} == pytest.approx(rates, rel=1e-9)


def test_every_other_number_is_that_of_its_source(recipe):
    found = {key: one for key, one in vars(recipe).items() if key.isupper() and type(one) is float}
    expected = OTHERS[name_of(recipe)]
    assert found == expected
    assert dropout_of(recipe, Namespace(proof=False)) == expected.get("DROPOUT", 0.0)
    assert dropout_of(recipe, Namespace(proof=True)) == 0.0


def test_the_weights_that_decay_are_those_of_the_source(recipe):
    shape, decays = DECAYED[name_of(recipe)]
    sizes = recipe.weight_shapes(shape)
    assert {name: recipe.decays(name) for name in sizes} == {
        name: decays(name, size) for name, size in sizes.items()
    }
