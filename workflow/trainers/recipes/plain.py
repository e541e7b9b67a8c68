"""What VGG16 and AlexNet have in common: convolutions and linear layers, all with biases."""

import numpy as np

from trainers.contract.recipe import uniform


def decays(name):
    """All weights are decayed, and biases too, as in torchvision's reference training."""
    return True


def start(name, size, random, proof):
    """Where a weight starts: He-initialised by fan-in, biases at zero.

    For a proof biases are not zero, and the last layer is large.
    Source: He et al., Delving Deep into Rectifiers (2015).
    """
    if name.endswith("bias"):
        return uniform(random, size, 0.25) if proof else np.zeros(size, np.float32)
    bound = (6 / np.prod(size[1:])) ** 0.5
    if name == "fc3.weight" and not proof:
        bound /= 10  # or the first losses would be far above those of chance
    return uniform(random, size, bound)
