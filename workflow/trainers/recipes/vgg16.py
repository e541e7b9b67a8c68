"""VGG16, with 138,357,544 parameters for images of 224 x 224 pixels.

Source: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition
(2014), configuration D and section 3.1.
"""

from functools import partial

from trainers.inputs.images import check_size
from trainers.inputs.images import noise as synthetic_batch
from trainers.recipes import plain
from trainers.recipes.plain import DROPOUT, OPTIMIZER, Convolution, decays, start

__all__ = ["DROPOUT", "OPTIMIZER", "decays", "start", "synthetic_batch"]

CONVOLUTIONS = tuple(
    Convolution(f"conv{group}.{number}", channels, pool=2 if number == count else 0)
    for group, (channels, count) in enumerate(
        ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), start=1
    )
    for number in range(1, count + 1)
)
DROPS_FIRST = False
CUTS = {
    2: ("conv5.1.weight",),
    (15, 1): ("fc1.weight",),
    3: ("conv3.1.weight", "conv5.1.weight"),
    4: ("conv3.1.weight", "conv4.1.weight", "fc1.weight"),
}
"""PipeDream cuts after ten convolutions for 8 GPUs, after all thirteen for 16. Source: Microsoft's
pipedream, commit 7db6a1c, runtime/image_classification/models/vgg16."""

features, weight_shapes, flops = plain.numbers_of(CONVOLUTIONS)
learning_rate = partial(plain.learning_rate, 256)


def check(shape):
    check_size(shape, 32)
