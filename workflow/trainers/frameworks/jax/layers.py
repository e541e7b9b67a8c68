"""What models have in common in JAX.

They compute in the data type of the features that they are given; weights are float32.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from trainers.inputs import images


def normalized(pixels, compute):
    """uint8 images [N, H, W, 3], normalised, in a data type.

    Images arrive as bytes and are normalised on the device: a quarter of the traffic.
    """
    mean, deviation = np.float32(images.MEAN), np.float32(images.STD)
    return ((pixels.astype(jnp.float32) - mean) / deviation).astype(compute)


def convolution(x, kernel, stride=1, padding=0):
    """Of features [N, H, W, in] with [height, width, in, out]."""
    return lax.conv_general_dilated(
        x,
        kernel.astype(x.dtype),
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def linear(x, weight, bias):
    """Of features [.., in] with [out, in] and [out]."""
    return x @ weight.T.astype(x.dtype) + bias.astype(x.dtype)


def layer_norm(x, weight, bias, epsilon):
    """Of features [.., F], in float32 whatever their data type."""
    whole = x.astype(jnp.float32)
    whole -= whole.mean(-1, keepdims=True)
    spread = jnp.square(whole).mean(-1, keepdims=True) + epsilon
    return (whole * lax.rsqrt(spread) * weight + bias).astype(x.dtype)


def largest(x, size, stride, padding=0):
    """The maximum of each part of that size of features [N, H, W, C]."""
    pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    # Only from a number of Python's own has it a gradient in bfloat16.
    return lax.reduce_window(x, -np.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)


def dropped(x, share, key, place):
    """Features, a share of which is dropped out, and the others are as much larger.

    Args:
        key: of this step's random numbers; None: nothing drops out.
        place: a number of its own for each place of a model where something drops out.
    """
    if key is None or not share:
        return x
    kept = jax.random.bernoulli(jax.random.fold_in(key, place), 1 - share, x.shape)
    return jnp.where(kept, x / (1 - share), jnp.zeros((), x.dtype))


class Layers:
    """A Transformer's layers by the names of their weights, and what drops out of each in turn."""

    def __init__(self, weights, epsilon, dropout=0.0, key=None):
        self._weights, self._epsilon = weights, epsilon
        self._dropout, self._key, self._drops = dropout, key, 0

    def rows(self, name, numbers):
        return jnp.take(self._weights[name + ".weight"], numbers, 0, mode="clip")

    def linear(self, name, x):
        return linear(x, self._weights[name + ".weight"], self._weights[name + ".bias"])

    def norm(self, name, x):
        weight, bias = (self._weights[f"{name}.norm.{part}"] for part in ("weight", "bias"))
        return layer_norm(x, weight, bias, self._epsilon)

    def dropped(self, x):
        self._drops += 1
        return dropped(x, self._dropout, self._key, self._drops)

    def attended(self, fused, heads, masked):
        """What each token attends to, [N, S, H], of queries, keys and values in one [N, S, 3 H].

        `masked` takes and returns scores, float32 [N, heads, S, S].
        """
        count, length, _ = fused.shape
        qkv = fused.reshape(count, length, 3, heads, -1)
        query, key, value = (qkv[:, :, part] for part in range(3))
        scores = jnp.einsum("nqhf,nkhf->nhqk", query * query.shape[-1] ** -0.5, key)
        shares = jax.nn.softmax(masked(scores.astype(jnp.float32))).astype(fused.dtype)
        found = jnp.einsum("nhqk,nkhf->nqhf", self.dropped(shares), value)
        return found.reshape(count, length, -1)


def cross_entropy(logits, labels, smoothing=0.0):
    """Of each row [N, classes] with its label [N], whose rest goes to all classes alike."""
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    own = jnp.take_along_axis(logs, labels[:, None], 1)[:, 0]
    return -(1 - smoothing) * own - smoothing * logs.mean(1)
