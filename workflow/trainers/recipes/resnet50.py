"""ResNet-50 v1.5, with 25,557,032 parameters whatever the size of its images.

Source: He et al., Deep Residual Learning for Image Recognition (2015). v1.5 halves the resolution
in a bottleneck's 3x3 convolution, where the paper does so in its first 1x1.
"""

import numpy as np

from trainers.contract.recipe import Sgd, operations
from trainers.contract.weights import uniform
from trainers.inputs.images import CLASSES, check_size
from trainers.inputs.images import noise as synthetic_batch

__all__ = ["synthetic_batch"]

EXPANSION = 4
"""Output channels per channel of the width of a block: 1x1, 3x3 and 1x1 convolutions beside a
shortcut. A model takes uint8 images [N, H, W, 3] and labels [N]."""

BATCH_NORM_EPSILON = 1e-5
BATCH_NORM_MOMENTUM = 0.9  # how much of the running averages a step keeps

OPTIMIZER = Sgd(momentum=0.875, weight_decay=3.0517578125e-05)
LABEL_SMOOTHING = 0.1


def _blocks():
    channels, stages = 64, ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
    for stage, (width, count, stride) in enumerate(stages, start=1):
        for block in range(count):
            yield f"layer{stage}.{block}", channels, width, 1 if block else stride
            channels = EXPANSION * width


BLOCKS = tuple(_blocks())
"""The sixteen bottlenecks in order: name, channels of the input, width, stride of the 3x3."""
FEATURES = EXPANSION * BLOCKS[-1][2]
"""The number of features of each image that the classifier gets."""
CUTS = {
    2: ("layer3.0.1.conv.weight",),
    3: ("layer2.2.1.conv.weight", "layer3.3.1.conv.weight"),
    4: ("layer2.0.1.conv.weight", "layer3.0.1.conv.weight", "layer4.0.1.conv.weight"),
}
"""Between blocks, so that stages have about as much to compute."""


def check(shape):
    check_size(shape, 32)


def learning_rate(global_batch):
    """It grows with the batch up to 256 images and no further."""
    # So losses of a few hundred iterations stay finite at every global batch without a warm-up.
    return 0.1 * min(1.0, global_batch / 256)


def decays(name):
    """All weights decay except those of batch norms."""
    return name.startswith("fc.") or name.endswith("conv.weight")


def weight_shapes(shape):
    """The weights in the order in which an image passes them, a block's shortcut last.

    Convolutions are [out, in, height, width] as "conv.weight", batch norms "bn.weight" and
    "bn.bias", each below its block, such as "layer1.0.3.bn.bias" or "layer1.0.shortcut
    .conv.weight"; the classifier is "fc.weight" [classes, features] and "fc.bias".
    """
    sizes = {}

    def conv_bn(name, channels, out, size):
        sizes[name + ".conv.weight"] = (out, channels, size, size)
        sizes[name + ".bn.weight"] = sizes[name + ".bn.bias"] = (out,)

    conv_bn("stem", 3, 64, 7)
    for name, channels, width, _ in BLOCKS:
        conv_bn(name + ".1", channels, width, 1)
        conv_bn(name + ".2", width, width, 3)
        conv_bn(name + ".3", width, EXPANSION * width, 1)
        if channels != EXPANSION * width:
            conv_bn(name + ".shortcut", channels, EXPANSION * width, 1)
    sizes["fc.weight"] = (CLASSES, FEATURES)
    sizes["fc.bias"] = (CLASSES,)
    return sizes


def flops(shape):
    """Operations to train on an image: of convolutions and of the classifier."""
    side = -(-shape["image_size"] // 2)
    products = first = 64 * 3 * 7**2 * side**2
    side = -(-side // 2)
    for _, channels, width, stride in BLOCKS:
        before, side, out = side, -(-side // stride), EXPANSION * width
        products += channels * width * before**2 + (9 * width + out) * width * side**2
        products += channels * out * side**2 if channels != out else 0
    return operations(products + FEATURES * CLASSES, first)


def start(name, size, random, proof):
    """Convolutions are He-initialised by fan-out, each block's last batch norm starts at zero."""
    # For a proof no batch norm and no bias is zero, so that every block shows in the loss. Source:
    # He et al., Delving Deep into Rectifiers (2015); Goyal et al., Large Minibatch SGD (2017).
    last = name.endswith(".3.bn.weight")
    if name.endswith("conv.weight"):
        bound = (6 / (size[0] * size[2] * size[3])) ** 0.5
        # Batch norm hides their size, but a step turns large ones less.
        return uniform(random, size, 4 * bound if proof else bound)
    if name == "fc.weight":
        return uniform(random, size, (2 if proof else 1) * FEATURES**-0.5)
    if not proof:
        return np.full(size, name.endswith("bn.weight") and not last, np.float32)
    started = uniform(random, size, 0.25) + np.float32(name.endswith("bn.weight"))
    # With larger features the losses of a few steps would magnify the rounding errors in which
    # frameworks differ.
    if last:
        started *= np.float32(0.25)
    if name.startswith("layer4.") and (last or name.endswith("shortcut.bn.weight")):
        started *= np.float32(0.25)
    return started
