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


def cross_entropy(logits, labels, smoothing=0.0):
    """Of each row [N, classes] with its label [N], whose rest goes to all classes alike."""
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    own = jnp.take_along_axis(logs, labels[:, None], 1)[:, 0]
    return -(1 - smoothing) * own - smoothing * logs.mean(1)
