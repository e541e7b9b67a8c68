"""What models have in common in JAX, in the data type of given features; weights are float32."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from trainers.contract import settings
from trainers.inputs import images

LANES = 64  # matrix units want multiples of it


def normalized(pixels, compute):
    """uint8 images [N, H, W, 3], normalised, in a data type."""
    mean, deviation = np.float32(images.MEAN), np.float32(images.STD)
    return ((pixels.astype(jnp.float32) - mean) / deviation).astype(compute)


def convolution(x, kernel, stride=1, padding=0):
    """Of features [N, H, W, in] with [height, width, in, out]."""
    how = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    steps, around = (stride, stride), [(padding, padding)] * 2
    return lax.conv_general_dilated(x, kernel.astype(x.dtype), steps, around, **how)


def linear(x, weight, bias):
    """Of features [.., in] with [out, in] and [out]."""
    return x @ weight.T.astype(x.dtype) + bias.astype(x.dtype)


def gelu(x, approximate=False):
    """In float32 whatever the data type of features; the exact one, or by tanh."""
    return jax.nn.gelu(x.astype(jnp.float32), approximate).astype(x.dtype)


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
    """Features, a share of which is dropped out, and the others are as much larger."""
    # A random byte decides for each feature: a share of 0.1 becomes 26 of 256. Each `place` of a
    # model has its own number; without a key nothing drops out.
    kept = 256 - round(256 * share)
    if key is None or kept == 256:
        return x
    drawn = jax.random.bits(jax.random.fold_in(key, place), x.shape, jnp.uint8)
    return jnp.where(drawn < kept, x / (kept / 256), jnp.zeros((), x.dtype))


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

    def attended(self, fused, heads, mask):
        """What each token attends to, [N, S, H], of queries, keys and values in one [N, S, 3 H].

        The mask is added to scores, float32 [N, heads, S, S].
        """
        query, key, value = _parts(fused, heads)
        scores = jnp.einsum("nqhf,nkhf->nhqk", query * query.shape[-1] ** -0.5, key)
        shares = jax.nn.softmax(scores.astype(jnp.float32) + mask).astype(fused.dtype)
        found = jnp.einsum("nhqk,nkhf->nqhf", self.dropped(shares), value)
        return found.reshape(*fused.shape[:2], -1)


def attended_before(fused, heads, by):
    """As attended, of each token itself and those before it, by what attention_by returned."""
    query, key, value = _parts(fused, heads)
    found = jax.nn.dot_product_attention(query, key, value, is_causal=True, implementation=by)
    return found.reshape(*fused.shape[:2], -1)


def attention_by(width, compute):
    """What computes attention of heads of a width: cuDNN, without scores in memory, if it can."""
    # JAX takes it only where it is named. Source of what it asks for: JAX 0.12's
    # jax/_src/cudnn/fused_attention_stablehlo.py, check_is_flash_attention.
    device = jax.local_devices()[0]
    fits = compute.itemsize == 2 and width % 8 == 0 and width <= 128
    by = "xla"
    if device.platform == "gpu" and fits and float(device.compute_capability) >= 8.0:
        by = "cudnn"
    return settings.switched("attention", by)


def _parts(fused, heads):
    qkv = fused.reshape(*fused.shape[:2], 3, heads, -1)
    return (qkv[:, :, part] for part in range(3))


def products(x, weight):
    """Of features [.., F] with each row of a weight [rows, F]: [.., rows], or a few more of -inf.

    In 16 bits these make rows of such a length as matrix units want; XLA would copy what it pads.
    """
    more = -len(weight) % LANES if x.dtype.itemsize == 2 else 0
    found = x @ jnp.pad(weight.astype(x.dtype), ((0, more), (0, 0))).T
    return jnp.where(jnp.arange(found.shape[-1]) < len(weight), found, -jnp.inf) if more else found


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def cross_entropy(logits, labels, smoothing=0.0):
    """Of rows [N, classes] with labels [N], whose rest goes to all classes alike; float32 [N]."""
    # No copy of the logits in float32 is kept for the gradient.
    return _losses(logits, labels, smoothing)[0]


def _losses(logits, labels, smoothing):
    whole = logits.astype(jnp.float32)
    total = jax.nn.logsumexp(whole, axis=1)
    own = jnp.where(_is_label(logits, labels), whole, 0).sum(1)
    losses = total - (1 - smoothing) * own
    if smoothing:
        losses -= smoothing * whole.mean(1)
    return losses, (logits, labels, total)


def _gradient(smoothing, kept, given):
    logits, labels, total = kept
    wanted = (1 - smoothing) * _is_label(logits, labels) + smoothing / logits.shape[1]
    shares = jnp.exp(logits.astype(jnp.float32) - total[:, None])
    return ((shares - wanted) * given[:, None]).astype(logits.dtype), None


cross_entropy.defvjp(_losses, _gradient)


def _is_label(logits, labels):
    return jnp.arange(logits.shape[1]) == labels[:, None]
