"""VGG16, with 138,357,544 parameters for images of 224 x 224 pixels.

Source: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition
(2014), configuration D and section 3.1.
"""

from trainers.inputs.images import check_size
from trainers.inputs.images import noise as synthetic_batch
from trainers.recipes.plain import DROPOUT, OPTIMIZER, decays, flops_of, linear_shapes, start

__all__ = ["DROPOUT", "OPTIMIZER", "decays", "start", "synthetic_batch"]

CONVOLUTIONS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the 3x3 convolutions; after each group, the resolution is halved."""
CUTS = {
    2: ("conv5.1.weight",),
    (15, 1): ("fc1.weight",),
    3: ("conv3.1.weight", "conv5.1.weight"),
    4: ("conv3.1.weight", "conv4.1.weight", "fc1.weight"),
}
"""PipeDream cuts after ten convolutions for 8 GPUs, after all thirteen for 16. Source: Microsoft's
pipedream, commit 7db6a1c, runtime/image_classification/models/vgg16."""


def check(shape):
    check_size(shape, 32)


def learning_rate(global_batch):
    """The paper's rate for 256 images or more; for fewer it falls with the batch."""
    return 0.01 * min(1.0, global_batch / 256)


def features(shape):
    """Channels, height and width of each image as it reaches the first linear layer."""
    side = shape["image_size"] // 2 ** len(CONVOLUTIONS)
    return CONVOLUTIONS[-1][-1], side, side


def weight_shapes(shape):
    """The weights in the order in which an image passes them.

    Convolutions "conv1.1.weight" [out, in, 3, 3] to "conv5.3.weight", then "fc1", "fc2" and "fc3",
    [out, in], each with its bias. The first linear layer takes channels before rows.
    """
    sizes, channels = {}, 3
    for group, widths in enumerate(CONVOLUTIONS, start=1):
        for number, width in enumerate(widths, start=1):
            sizes[f"conv{group}.{number}.weight"] = (width, channels, 3, 3)
            sizes[f"conv{group}.{number}.bias"] = (width,)
            channels = width
    sizes.update(linear_shapes(features(shape)))
    return sizes


def flops(shape):
    size = shape["image_size"]
    sides = [size // 2**group for group, some in enumerate(CONVOLUTIONS) for _ in some]
    return flops_of(weight_shapes(shape), sides)
