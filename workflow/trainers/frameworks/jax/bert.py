"""BERT for JAX; trainers/recipes/bert.py says what it is."""

import jax.numpy as jnp

from trainers.contract.recipe import dropout_of
from trainers.frameworks.jax.layers import Layers, cross_entropy, gelu, linear
from trainers.inputs.sentences import sentence_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import bert


class Bert:
    def __init__(self, flags, compute):
        self._shape, self._compute = flags.shape, compute
        self._dropout = dropout_of(bert, flags)

    def __call__(self, weights, state, key, *batch):
        tokens, real, segments, positions, masked, counted, following = batch
        layers = Layers(weights, bert.NORM_EPSILON, self._dropout, key)
        embedded = (
            layers.rows("embeddings.word", tokens)
            + weights["embeddings.position.weight"][: tokens.shape[1]]
            + layers.rows("embeddings.segment", segments)
        )
        x = layers.dropped(layers.norm("embeddings", embedded).astype(self._compute))
        # [N, 1, 1, S]: the same for all heads and all queries.
        mask = ((1 - real) * bert.MASKED)[:, None, None, :]
        for number in range(self._shape["layers"]):
            x = self._layer(layers, f"layer{number}.", x, mask)
        x_masked = jnp.take_along_axis(x, positions[:, :, None], 1)
        words = layers.norm("mlm", gelu(layers.linear("mlm.transform", x_masked)))
        logits = linear(words, weights["embeddings.word.weight"], weights["mlm.bias"])
        losses = cross_entropy(logits.reshape(-1, logits.shape[-1]), masked.flatten())
        total = (losses * counted.flatten()).sum()
        pooled = jnp.tanh(layers.linear("pooler", x[:, 0]))
        nsp = cross_entropy(layers.linear("nsp", pooled), following).mean()
        return total / (counted.sum() + bert.PREDICTIONS_EPSILON) + nsp, state

    def _layer(self, layers, name, x, mask):
        fused = layers.linear(name + "attention.qkv", x)
        found = layers.attended(fused, self._shape["heads"], mask)
        attended = layers.linear(name + "attention.out", found)
        x = layers.norm(name + "attention", x + layers.dropped(attended))
        inside = gelu(layers.linear(name + "ffn.in", x))
        inside = layers.dropped(layers.linear(name + "ffn.out", inside))
        return layers.norm(name + "ffn", x + inside)
