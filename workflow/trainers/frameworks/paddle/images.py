"""What models of images have in common in PaddlePaddle."""

import paddle
from paddle import nn

from trainers.inputs import images


class Normalize(nn.Layer):
    """Takes uint8 images [N, H, W, 3], returns normalised ones in a layout."""

    def __init__(self, layout):
        super().__init__()
        self.layout = layout
        self.register_buffer("mean", paddle.to_tensor(images.MEAN), persistable=False)
        self.register_buffer("std", paddle.to_tensor(images.STD), persistable=False)

    def forward(self, pixels):
        normalised = (pixels.astype("float32") - self.mean) / self.std
        return normalised.transpose((0, 3, 1, 2)) if self.layout == "NCHW" else normalised
