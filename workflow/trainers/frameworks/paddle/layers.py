"""What models have in common in PaddlePaddle."""

import paddle
from paddle import nn
from paddle.nn import functional

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


def heads_of(x, parts, heads):
    """What a fused linear layer gave, [N, S, parts H], as `parts` of [N, heads, S, H / heads]."""
    _, length, features = x.shape
    x = x.reshape([-1, length, parts, heads, features // (parts * heads)])
    return x.transpose([2, 0, 3, 1, 4]).unbind()


def attended(query, key, value, mask, dropout):
    """Features [N, S, H] of what each query attends to: the mask is added to its scores."""
    scores = paddle.matmul(query * query.shape[-1] ** -0.5, key, transpose_y=True)
    found = paddle.matmul(dropout(functional.softmax(scores + mask)), value)
    return found.transpose([0, 2, 1, 3]).flatten(2)
