"""The recipe that every framework trains ResNet-50 by."""

import importlib.util
from argparse import Namespace

import numpy as np
import pytest
from reperf.systems import SYSTEMS, WORKLOADS

_spec = importlib.util.spec_from_file_location("resnet50", SYSTEMS / "resnet50.py")
resnet50 = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(resnet50)


@pytest.fixture(scope="module")
def weights():
    return resnet50.initial_weights(seed=1)


def test_the_learning_rate_grows_with_the_batch_and_stays_safe():
    assert resnet50.learning_rate(8) == pytest.approx(0.1 / 32)
    assert resnet50.learning_rate(256) == resnet50.learning_rate(8192) == 0.1


def test_the_weights_are_those_of_the_workload(weights):
    assert sum(array.size for array in weights.values()) == WORKLOADS["resnet50"]["parameters"]
    assert all(array.dtype == np.float32 for array in weights.values())


def test_the_weights_are_the_same_on_every_machine(weights):
    assert resnet50.digest(weights.values()) == "26d0b32b7a781bbe"
    other = resnet50.initial_weights(seed=2)
    assert resnet50.digest(other.values()) != resnet50.digest(weights.values())


def test_each_block_starts_as_its_shortcut_and_every_layer_keeps_the_variance(weights):
    zero = [name for name, array in weights.items() if not array.any()]
    assert "layer1.0.3.bn.weight" in zero
    assert len([name for name in zero if name.endswith(".bn.weight")]) == 16
    conv = weights["layer2.0.2.conv.weight"]
    assert conv.shape == (128, 128, 3, 3)
    assert conv.std() == pytest.approx((2 / (128 * 9)) ** 0.5, rel=0.01)


def test_all_weights_but_batch_norms_decay(weights):
    kept = [name for name in weights if not resnet50.decays(name)]
    assert len(kept) == 2 * 53
    assert all(".bn." in name for name in kept)


def test_ranks_and_seeds_have_synthetic_batches_of_their_own():
    def batch(seed, rank):
        return resnet50.synthetic_batch(Namespace(seed=seed, batch_size=2, image_size=32), rank)

    images, labels = batch(1, 0)
    assert (images.shape, images.dtype, labels.shape) == ((2, 32, 32, 3), np.uint8, (2,))
    assert np.array_equal(images, batch(1, 0)[0])
    for other in (batch(1, 1), batch(2, 0)):
        assert not np.array_equal(images, other[0])
