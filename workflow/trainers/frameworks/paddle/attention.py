"""Attention of several heads, for PaddlePaddle's models."""

import paddle
from paddle.nn import functional


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
