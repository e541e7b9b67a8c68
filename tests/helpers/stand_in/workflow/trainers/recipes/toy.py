"""Softmax regression from the bytes of a file to ten classes, which takes as long as it is told."""

import numpy as np

from trainers.contract.recipe import Sgd
from trainers.contract.weights import uniform

OPTIMIZER = Sgd(momentum=0.9, weight_decay=1e-4)
CLASSES, BYTES = 10, 256


def check(shape):
    """Any shape will do."""


def learning_rate(global_batch):
    return 0.1


def decays(name):
    return name == "fc.weight"


def weight_shapes(shape):
    return {"fc.weight": (CLASSES, BYTES), "fc.bias": (CLASSES,)}


def start(name, size, random, proof):
    return uniform(random, size, 0.1)


def synthetic_batch(shape, batch_size, random):
    """Shares of each byte, float32 [N, 256], and int64 labels [N]."""
    shares = random.rand(batch_size, BYTES).astype(np.float32)
    return shares / shares.sum(1, keepdims=True), random.randint(CLASSES, size=batch_size)
