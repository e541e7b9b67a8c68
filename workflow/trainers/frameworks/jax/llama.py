"""Llama 3 for JAX; trainers/recipes/llama.py says what it is."""

import jax
import jax.numpy as jnp
from jax import lax

from trainers.frameworks.jax.layers import attention_by, cross_entropy
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import llama


class Llama:
    def __init__(self, flags, compute):
        self._shape, self._compute = flags.shape, compute
        self._rotations = llama.rotations(flags.shape)
        self._by = attention_by(flags.shape["hidden"] // flags.shape["heads"], compute)

    def __call__(self, weights, state, key, tokens, following):
        def linear(name, x):
            return x @ weights[name + ".weight"].T.astype(x.dtype)

        def norm(name, x):
            return rms_norm(x, weights[name + ".norm.weight"])

        x = jnp.take(weights["embeddings.token.weight"], tokens, 0, mode="clip")
        x = x.astype(self._compute)
        for number in range(self._shape["layers"]):
            attention, ffn = f"layer{number}.attention", f"layer{number}.ffn"
            x = x + self._attended(linear, attention, norm(attention, x))
            inside = norm(ffn, x)
            gate = jax.nn.silu(linear(ffn + ".gate", inside))
            x = x + linear(ffn + ".out", gate * linear(ffn + ".in", inside))
        output = "logits" if self._shape["embeddings"] == 2 else "embeddings.token"
        logits = linear(output, norm("last", x))
        losses = cross_entropy(logits.reshape(-1, logits.shape[-1]), following.flatten())
        return losses.mean(), state

    def _attended(self, linear, name, x):
        width = self._shape["hidden"] // self._shape["heads"]
        query, key, value = (
            linear(f"{name}.{part}", x).reshape(*x.shape[:2], -1, width)
            for part in ("query", "key", "value")
        )
        query, key = (rotated(one, *self._rotations) for one in (query, key))
        found = jax.nn.dot_product_attention(
            query, key, value, is_causal=True, implementation=self._by
        )
        return linear(name + ".out", found.reshape(x.shape))


def rms_norm(x, weight):
    """Of features [.., F], in float32 whatever their data type."""
    whole = x.astype(jnp.float32)
    spread = jnp.square(whole).mean(-1, keepdims=True) + llama.NORM_EPSILON
    return (whole * lax.rsqrt(spread) * weight).astype(x.dtype)


def rotated(x, cosines, sines):
    """Features [N, S, heads, F], of which i and i + F / 2 are rotated by their token's place."""
    cosines, sines = cosines[:, None], sines[:, None]
    left, right = jnp.split(x.astype(jnp.float32), 2, -1)
    turned = left * cosines - right * sines, right * cosines + left * sines
    return jnp.concatenate(turned, -1).astype(x.dtype)
