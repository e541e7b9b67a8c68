"""AlexNet on one device, with 61,100,840 parameters for images of 224 x 224 pixels.

Source: Krizhevsky, One Weird Trick for Parallelizing Convolutional Neural Networks (2014), whose
network has no local response normalisation.
"""

from functools import partial

from trainers.inputs.images import check_size
from trainers.inputs.images import noise as synthetic_batch
from trainers.recipes import plain
from trainers.recipes.plain import DROPOUT, OPTIMIZER, Convolution, decays, start

__all__ = ["DROPOUT", "OPTIMIZER", "decays", "start", "synthetic_batch"]

CONVOLUTIONS = (
    Convolution("conv1", 64, size=11, stride=4, padding=2, pool=3),
    Convolution("conv2", 192, size=5, padding=2, pool=3),
    Convolution("conv3", 384),
    Convolution("conv4", 256),
    Convolution("conv5", 256, pool=3),
)
DROPS_FIRST = True
"""Features drop out before the first two linear layers; else after them."""
CUTS = {
    2: ("fc1.weight",),
    3: ("conv3.weight", "fc1.weight"),
    4: ("conv2.weight", "conv4.weight", "fc1.weight"),
}
"""The linear layers have 96 % of the weights: in a stage of one replica they are never averaged.
Source: the two stages of the report on PipeDream."""

features, weight_shapes, flops = plain.numbers_of(CONVOLUTIONS)
learning_rate = partial(plain.learning_rate, 128)


def check(shape):
    check_size(shape, 63)
