"""What VGG16 and AlexNet have in common: convolutions, then three linear layers, all with biases.

Convolutions are "conv1.weight", [out, in, height, width], and so on, linear layers "fc1", "fc2" and
"fc3", [out, in], each with its bias. The first linear layer takes channels before rows.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from trainers.contract.recipe import Sgd, operations
from trainers.contract.weights import uniform
from trainers.inputs.images import CLASSES

HIDDEN = 4096
DROPOUT = 0.5

OPTIMIZER = Sgd(momentum=0.9, weight_decay=5e-4)


class Convolution(NamedTuple):
    name: str
    channels: int
    size: int = 3
    stride: int = 1
    padding: int = 1
    pool: int = 0  # of a maximum after it: so many pixels wide, at a stride of two; 0: none


def sides(convolutions, shape):
    """The side of the image that each convolution gives, and of what linear layers are given."""
    found, side = [], shape["image_size"]
    for one in convolutions:
        found.append((side + 2 * one.padding - one.size) // one.stride + 1)
        side = (found[-1] - one.pool) // 2 + 1 if one.pool else found[-1]
    return [*found, side]


def features(convolutions, shape):
    """How many of each image reach the first linear layer."""
    return convolutions[-1].channels * sides(convolutions, shape)[-1] ** 2


def weight_shapes(convolutions, shape):
    """The weights in the order in which an image passes them."""
    sizes, channels = {}, 3
    for one in convolutions:
        sizes[f"{one.name}.weight"] = (one.channels, channels, one.size, one.size)
        sizes[f"{one.name}.bias"] = (one.channels,)
        channels = one.channels
    inputs = features(convolutions, shape)
    for number, outputs in enumerate((HIDDEN, HIDDEN, CLASSES), start=1):
        sizes[f"fc{number}.weight"] = (outputs, inputs)
        sizes[f"fc{number}.bias"] = (outputs,)
        inputs = outputs
    return sizes


def flops(convolutions, shape):
    """Operations to train on an image."""
    matrices = [size for size in weight_shapes(convolutions, shape).values() if len(size) > 1]
    each = [side**2 for side in sides(convolutions, shape)[:-1]] + [1, 1, 1]
    products = [int(np.prod(size)) * times for size, times in zip(matrices, each)]
    return operations(sum(products), first=products[0])


def numbers_of(convolutions):
    """Functions of a shape: what reaches the first linear layer, the weights, the operations."""
    return [partial(one, convolutions) for one in (features, weight_shapes, flops)]


def learning_rate(images, global_batch):
    """The papers' rate for so many images or more; for fewer it falls with the batch."""
    return 0.01 * min(1.0, global_batch / images)


def decays(name):
    """All weights decay, biases included, as in torchvision's reference training."""
    return True


def start(name, size, random, proof):
    """Where a weight starts: He-initialised by fan-in, biases at zero."""
    # For a proof no bias is zero, and images have less weight, else the losses of a few steps would
    # magnify the rounding errors in which frameworks differ. Source: He et al., Delving Deep into
    # Rectifiers (2015).
    if name.endswith("bias"):
        return uniform(random, size, 0.05) if proof else np.zeros(size, np.float32)
    bound = (6 / np.prod(size[1:])) ** 0.5
    if name == "fc3.weight":
        bound /= 10  # else the first losses would be far above those of chance
    if proof and name in ("conv1.weight", "conv1.1.weight"):
        bound /= 5
    return uniform(random, size, bound)
