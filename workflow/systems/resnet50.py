"""ResNet-50 v1.5 as every framework trains it: the same start, the same data, the same optimizer.

It needs numpy alone, and runs on Python 3.7 and later.
"""

import hashlib

import numpy as np

MEAN = (123.675, 116.28, 103.53)  # of ImageNet's red, green and blue, 0 to 255
STD = (58.395, 57.12, 57.375)

# A crop's share of the image's area, and its width by its height.
# Source: Szegedy et al., Going Deeper with Convolutions (2014), section 6.
AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)

EXPANSION = 4  # a block's output channels by its width
CLASSES = 1000

BATCH_NORM_EPSILON = 1e-5
BATCH_NORM_MOMENTUM = 0.9  # the share of the running averages that a step keeps

MOMENTUM = 0.875
WEIGHT_DECAY = 3.0517578125e-05  # not on batch norm
LABEL_SMOOTHING = 0.1
STATIC_LOSS_SCALE = 128.0


def _blocks():
    channels = 64
    for stage, (width, count, stride) in enumerate(
        ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)), start=1
    ):
        for block in range(count):
            yield "layer{}.{}".format(stage, block), channels, width, 1 if block else stride
            channels = EXPANSION * width


BLOCKS = tuple(_blocks())
"""The sixteen bottlenecks in order: name, channels of the input, width, stride of the 3x3."""
FEATURES = EXPANSION * BLOCKS[-1][2]
"""What the classifier is given of each image."""


def learning_rate(global_batch):
    """The learning rate, constant over a run.

    It grows with the batch up to 256 images and no further, so that a few hundred iterations from
    random weights stay finite at every global batch without a warm-up. It does not change how fast
    a framework trains.
    """
    return 0.1 * min(1.0, global_batch / 256)


def decays(name):
    """Whether a weight of initial_weights is decayed: all are but batch norm's."""
    return name.startswith("fc.") or name.endswith("conv.weight")


def initial_weights(seed):
    """The weights that training starts from, the same in every framework to the bit.

    Convolutions are He-initialised by fan-out, each block's last batch norm starts as zero.
    Source: He et al., Delving Deep into Rectifiers (2015); Goyal et al., Accurate, Large Minibatch
    SGD (2017).

    Returns:
        Name -> float32 array, in the order in which an image passes them, a block's shortcut last:
        convolutions [out, in, height, width] as "conv.weight", batch norms "bn.weight" and
        "bn.bias", each below its block, such as "layer1.0.3.bn.bias" or "layer1.0.shortcut
        .conv.weight"; the classifier "fc.weight" [classes, features] and "fc.bias".
    """
    # The one generator of numpy's whose numbers no version changes.
    random = np.random.RandomState(seed)

    def uniform(shape, bound):
        return (random.random_sample(shape) * (2 * bound) - bound).astype(np.float32)

    def conv_bn(name, channels, out, size, gamma=1.0):
        weights[name + ".conv.weight"] = uniform(
            (out, channels, size, size), (6 / (out * size * size)) ** 0.5
        )
        weights[name + ".bn.weight"] = np.full(out, gamma, np.float32)
        weights[name + ".bn.bias"] = np.zeros(out, np.float32)

    weights = {}
    conv_bn("stem", 3, 64, 7)
    for name, channels, width, _ in BLOCKS:
        conv_bn(name + ".1", channels, width, 1)
        conv_bn(name + ".2", width, width, 3)
        conv_bn(name + ".3", width, EXPANSION * width, 1, gamma=0.0)
        if channels != EXPANSION * width:
            conv_bn(name + ".shortcut", channels, EXPANSION * width, 1)
    weights["fc.weight"] = uniform((CLASSES, FEATURES), FEATURES**-0.5)
    weights["fc.bias"] = np.zeros(CLASSES, np.float32)
    return weights


def synthetic_batch(flags, rank):
    """A rank's batch where no data is read: uint8 images [N, H, W, 3] and int64 labels [N].

    They are noise, the same in every framework, and trained on again and again.
    """
    random = np.random.RandomState([flags.seed, rank])
    shape = (flags.batch_size, flags.image_size, flags.image_size, 3)
    images = random.randint(256, size=shape, dtype=np.uint8)
    return images, random.randint(CLASSES, size=flags.batch_size)


def digest(weights):
    """A short digest of arrays of weights."""
    seen = hashlib.sha256()
    for weight in weights:
        seen.update(np.ascontiguousarray(weight, np.float32))
    return seen.hexdigest()[:16]
