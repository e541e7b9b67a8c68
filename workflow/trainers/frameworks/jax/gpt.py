"""GPT-2 for JAX; trainers/recipes/gpt2.py says what it is."""

import jax
import jax.numpy as jnp

from trainers.frameworks.jax import layers
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import gpt2


class Gpt:
    def __init__(self, flags, compute):
        self._shape, self._compute = flags.shape, compute
        self._by = layers.attention_by(flags.shape["hidden"] // flags.shape["heads"], compute)

    def __call__(self, weights, state, key, tokens, following):
        made = layers.Layers(weights, gpt2.NORM_EPSILON)
        x = made.rows("embeddings.token", tokens) + weights["embeddings.position.weight"]
        x = x.astype(self._compute)
        for number in range(self._shape["layers"]):
            x = self._layer(made, f"layer{number}.", x)
        logits = layers.products(made.norm("last", x), weights["embeddings.token.weight"])
        losses = layers.cross_entropy(logits.reshape(-1, logits.shape[-1]), following.flatten())
        return losses.mean(), state

    def _layer(self, made, name, x):
        fused = made.linear(name + "attention.qkv", made.norm(name + "attention", x))
        found = layers.attended_before(fused, self._shape["heads"], self._by)
        x = x + made.linear(name + "attention.out", found)
        inside = made.linear(name + "ffn.in", made.norm(name + "ffn", x))
        inside = jax.nn.gelu(inside.astype(jnp.float32), approximate=True).astype(x.dtype)
        return x + made.linear(name + "ffn.out", inside)
