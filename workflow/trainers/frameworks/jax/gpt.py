"""GPT-2 for JAX; trainers/recipes/gpt2.py says what it is."""

import jax
import jax.numpy as jnp

from trainers.frameworks.jax.layers import cross_entropy, layer_norm, linear
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import gpt2


class Gpt:
    """Takes tokens and those that follow each [N, S], returns their mean cross-entropy."""

    def __init__(self, flags, compute):
        self._shape, self._compute = flags.shape, compute

    def __call__(self, weights, state, key, tokens, following):
        words = weights["embeddings.token.weight"]
        x = jnp.take(words, tokens, 0, mode="clip") + weights["embeddings.position.weight"]
        x = x.astype(self._compute)
        for number in range(self._shape["layers"]):
            x = self._layer(weights, f"layer{number}.", x)
        logits = _norm(weights, "last", x) @ words.T.astype(x.dtype)
        losses = cross_entropy(logits.reshape(-1, logits.shape[-1]), following.flatten())
        return losses.mean(), state

    def _layer(self, weights, name, x):
        """Attention, then two linear layers, each behind a layer norm and beside a shortcut."""
        attended = self._attend(weights, name, _norm(weights, name + "attention", x))
        x = x + _linear(weights, name + "attention.out", attended)
        inside = _linear(weights, name + "ffn.in", _norm(weights, name + "ffn", x))
        inside = jax.nn.gelu(inside.astype(jnp.float32), approximate=True).astype(x.dtype)
        return x + _linear(weights, name + "ffn.out", inside)

    def _attend(self, weights, name, x):
        """Features of what each token attends to: itself and those before it."""
        count, length, hidden = x.shape
        heads = self._shape["heads"]
        # [N, S, 3 H] -> three of [N, S, heads, H / heads]
        qkv = _linear(weights, name + "attention.qkv", x).reshape(count, length, 3, heads, -1)
        query, key, value = (qkv[:, :, part] for part in range(3))
        scores = jnp.einsum("nqhf,nkhf->nhqk", query * (hidden // heads) ** -0.5, key)
        seen = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(seen, scores.astype(jnp.float32), -jnp.inf)
        shares = jax.nn.softmax(scores).astype(x.dtype)
        return jnp.einsum("nhqk,nkhf->nqhf", shares, value).reshape(x.shape)


def _linear(weights, name, x):
    return linear(x, weights[name + ".weight"], weights[name + ".bias"])


def _norm(weights, name, x):
    weight, bias = (weights[f"{name}.norm.{part}"] for part in ("weight", "bias"))
    return layer_norm(x, weight, bias, gpt2.NORM_EPSILON)
