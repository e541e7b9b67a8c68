"""What models of images have in common in OneFlow."""

import os

from oneflow import nn

from trainers.inputs import images

CHANNELS_LAST = os.environ.get("ONEFLOW_ENABLE_NHWC") == "1"  # OneFlow's layers read it


class Normalize(nn.CropMirrorNormalize):
    """Takes uint8 images [N, H, W, 3] and, if some are to be mirrored, which ones, [N].

    It returns normalised ones, [N, 3, H, W], or [N, H, W, 3] if channels are last.
    """

    def __init__(self):
        super().__init__(color_space="RGB", mean=images.MEAN, std=images.STD)
