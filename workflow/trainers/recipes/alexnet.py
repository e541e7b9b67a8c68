"""AlexNet on one device, with 61,100,840 parameters for images of 224 x 224 pixels.

Source: Krizhevsky, One Weird Trick for Parallelizing Convolutional Neural Networks (2014), whose
network has no local response normalisation.
"""

from trainers.inputs.images import check_size
from trainers.inputs.images import noise as synthetic_batch
from trainers.recipes.plain import DROPOUT, OPTIMIZER, decays, flops_of, linear_shapes, start

__all__ = ["DROPOUT", "OPTIMIZER", "decays", "start", "synthetic_batch"]

CONVOLUTIONS = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
"""Channels, size, stride and padding of the convolutions."""
POOLED = (0, 1, 4)  # the convolutions after which a 3x3 maximum halves the resolution
CUTS = {
    2: ("fc1.weight",),
    3: ("conv3.weight", "fc1.weight"),
    4: ("conv2.weight", "conv4.weight", "fc1.weight"),
}
"""The linear layers have 96 % of the weights: in a stage of one replica they are never averaged.
Source: the two stages of the report on PipeDream."""


def check(shape):
    check_size(shape, 63)


def learning_rate(global_batch):
    """The paper's rate for 128 images or more; for fewer it falls with the batch."""
    return 0.01 * min(1.0, global_batch / 128)


def features(shape):
    """Channels, height and width of each image as it reaches the first linear layer."""
    side = _pooled(_sides(shape)[-1])
    return CONVOLUTIONS[-1][0], side, side


def _sides(shape):
    """The side of the image that each convolution gives."""
    sides, side = [], shape["image_size"]
    for number, (_, size, stride, padding) in enumerate(CONVOLUTIONS):
        sides.append((side + 2 * padding - size) // stride + 1)
        side = _pooled(sides[-1]) if number in POOLED else sides[-1]
    return sides


def _pooled(side):
    return (side - 3) // 2 + 1


def weight_shapes(shape):
    """The weights in the order in which an image passes them.

    Convolutions "conv1.weight" [out, in, height, width] to "conv5.weight", then "fc1", "fc2" and
    "fc3", [out, in], each with its bias. The first linear layer takes channels before rows.
    """
    sizes, channels = {}, 3
    for number, (width, size, _, _) in enumerate(CONVOLUTIONS, start=1):
        sizes[f"conv{number}.weight"] = (width, channels, size, size)
        sizes[f"conv{number}.bias"] = (width,)
        channels = width
    sizes.update(linear_shapes(features(shape)))
    return sizes


def flops(shape):
    return flops_of(weight_shapes(shape), _sides(shape))
