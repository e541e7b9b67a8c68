"""What VGG16 and AlexNet have in common: convolutions and linear layers, all with biases."""

import numpy as np

from trainers.contract.recipe import Sgd, operations
from trainers.contract.weights import uniform
from trainers.inputs.images import CLASSES

HIDDEN = 4096
DROPOUT = 0.5

OPTIMIZER = Sgd(momentum=0.9, weight_decay=5e-4)


def linear_shapes(features):
    """The last three linear layers, "fc1", "fc2" and "fc3", [out, in], of features whose channels,
    height and width the first is given.
    """
    sizes, inputs = {}, int(np.prod(features))
    for number, outputs in enumerate((HIDDEN, HIDDEN, CLASSES), start=1):
        sizes[f"fc{number}.weight"] = (outputs, inputs)
        sizes[f"fc{number}.bias"] = (outputs,)
        inputs = outputs
    return sizes


def flops_of(sizes, sides):
    matrices = [size for size in sizes.values() if len(size) > 1]
    each = [side**2 for side in sides] + [1] * (len(matrices) - len(sides))
    products = [int(np.prod(size)) * times for size, times in zip(matrices, each)]
    return operations(sum(products), first=products[0])


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
