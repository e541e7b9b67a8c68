"""GPT-2 for JAX; trainers/recipes/gpt2.py says what it is."""

from trainers.frameworks.jax import layers
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import gpt2


class Gpt:
    def __init__(self, flags, compute):
        self._shape, self._compute = flags.shape, compute
        self._by = layers.attention_by(flags.shape["hidden"] // flags.shape["heads"], compute)

    def __call__(self, weights, state, key, tokens, following):
        own = layers.Layers(weights, gpt2.NORM_EPSILON)
        x = own.rows("embeddings.token", tokens) + weights["embeddings.position.weight"]
        x = x.astype(self._compute)
        for number in range(self._shape["layers"]):
            x = self._layer(own, f"layer{number}.", x)
        logits = layers.products(own.norm("last", x), weights["embeddings.token.weight"])
        losses = layers.cross_entropy(logits.reshape(-1, logits.shape[-1]), following.flatten())
        return losses.mean(), state

    def _layer(self, own, name, x):
        fused = own.linear(name + "attention.qkv", own.norm(name + "attention", x))
        found = layers.attended_before(fused, self._shape["heads"], self._by)
        x = x + own.linear(name + "attention.out", found)
        inside = own.linear(name + "ffn.in", own.norm(name + "ffn", x))
        return x + own.linear(name + "ffn.out", layers.gelu(inside, approximate=True))
