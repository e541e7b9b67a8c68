"""How an image is stored, cut, scaled and normalised: the same for every framework."""

import numpy as np

MEAN = (123.675, 116.28, 103.53)  # of ImageNet's red, green and blue, 0 to 255
STD = (58.395, 57.12, 57.375)

# A crop's share of the image's area, and its ratio of width to height.
# Source: Szegedy et al., Going Deeper with Convolutions (2014), section 6.
AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)

CLASSES = 1000

IMAGE, LABEL = "image/encoded", "image/class/label"  # in ImageNet's TFRecords


def check_size(shape, least):
    if shape["image_size"] < least:
        raise ValueError(f"image_size is {shape['image_size']}; allowed: {least} or more")


def noise(shape, batch_size, random):
    """A batch that is read from nowhere: uint8 images [N, H, W, 3] and int64 labels [N]."""
    size = (batch_size, shape["image_size"], shape["image_size"], 3)
    images = random.randint(256, size=size, dtype=np.uint8)
    return images, random.randint(CLASSES, size=batch_size)
