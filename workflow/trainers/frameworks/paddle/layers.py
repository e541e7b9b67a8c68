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


class Attention(nn.Layer):
    """What each token attends to, itself or a memory: features [N, S, H] -> [N, S, H].

    Each linear layer gives so many `parts` of queries, keys and values.
    """

    def __init__(self, shape, dropout, parts=(3,)):
        super().__init__()
        hidden, self.heads = shape["hidden"], shape["heads"]
        self.fused = nn.LayerList([nn.Linear(hidden, part * hidden) for part in parts])
        self.out = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask, memory=None):
        """The mask is added to scores."""
        if memory is None:
            query, key, value = heads_of(self.fused[0](x), 3, self.heads)
        else:
            (query,) = heads_of(self.fused[0](x), 1, self.heads)
            key, value = heads_of(self.fused[1](memory), 2, self.heads)
        scores = paddle.matmul(query * query.shape[-1] ** -0.5, key, transpose_y=True)
        found = paddle.matmul(self.dropout(functional.softmax(scores + mask)), value)
        return self.out(found.transpose([0, 2, 1, 3]).flatten(2))


def heads_of(x, parts, heads):
    """What a fused linear layer gave, [N, S, parts H], as `parts` of [N, heads, S, H / heads]."""
    _, length, features = x.shape
    x = x.reshape([-1, length, parts, heads, features // (parts * heads)])
    return x.transpose([2, 0, 3, 1, 4]).unbind()
