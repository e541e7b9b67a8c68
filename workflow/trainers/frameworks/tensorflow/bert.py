"""BERT for TensorFlow 2 and 1.15; trainers/recipes/bert.py says what it is."""

import tensorflow as tf

from trainers.contract.recipe import dropout_of
from trainers.frameworks.tensorflow.layers import attended, cross_entropies, heads_of
from trainers.recipes import bert


class Bert:
    """Features of all tokens are rows, [N S, H], but inside of attention."""

    def __init__(self, flags, layers):
        self.layers = layers
        self.shape = flags.shape
        self.rate = dropout_of(bert, flags)

    def __call__(self, *batch):
        tokens, real, segments, positions, masked, weights, following = batch
        layers, hidden = self.layers, self.shape["hidden"]
        dropout = layers.dropping(self.rate)
        x = dropout(self._embeddings(tokens, segments))
        # [N, 1, 1, S]: the same for all heads and all queries.
        mask = tf.cast(1 - real, layers.dtype)[:, tf.newaxis, tf.newaxis, :] * bert.MASKED
        for layer in range(self.shape["layers"]):
            x = self._layer(x, mask, f"layer{layer}", dropout)
        logits = self._masked_tokens(x, positions)
        losses = cross_entropies(logits, tf.reshape(masked, [-1]))
        weights = tf.reshape(weights, [-1])
        mlm = tf.reduce_sum(losses * weights) / (tf.reduce_sum(weights) + bert.PREDICTIONS_EPSILON)
        first = tf.reshape(x, [-1, self.shape["sequence_length"], hidden])[:, 0]
        pooled = tf.tanh(layers.linear(first, "pooler"))
        return mlm + tf.reduce_mean(cross_entropies(layers.linear(pooled, "nsp"), following))

    def _embeddings(self, tokens, segments):
        """Tokens and their segments [N, S] -> [N S, H]."""
        layers = self.layers
        x = layers.embedding(tokens, "embeddings.word")
        x += tf.cast(layers.weights["embeddings.position.weight"], x.dtype)[
            : self.shape["sequence_length"]
        ]
        # A product, because looked up rows add up in the gradient one after the other, of which
        # there are many here for each of two.
        segments = tf.one_hot(tf.reshape(segments, [-1]), bert.SEGMENTS, dtype=x.dtype)
        x = tf.reshape(x, [-1, self.shape["hidden"]])
        x += tf.matmul(segments, tf.cast(layers.weights["embeddings.segment.weight"], x.dtype))
        return self._norm(x, "embeddings")

    def _layer(self, x, mask, name, dropout):
        linear = self.layers.linear
        fused = linear(x, name + ".attention.qkv")
        heads = heads_of(fused, self.shape["sequence_length"], 3, self.shape["heads"])
        more = linear(attended(*heads, mask, dropout), name + ".attention.out")
        x = self._norm(x + dropout(more), name + ".attention")
        more = linear(_gelu(linear(x, name + ".ffn.in")), name + ".ffn.out")
        return self._norm(x + dropout(more), name + ".ffn")

    def _masked_tokens(self, x, positions):
        """Places [N, P] in the sequences of x -> logits [N P, vocabulary] of the tokens there."""
        layers, length = self.layers, self.shape["sequence_length"]
        starts = tf.range(tf.shape(positions, out_type=positions.dtype)[0]) * length
        x = tf.gather(x, tf.reshape(positions + starts[:, tf.newaxis], [-1]))
        x = self._norm(_gelu(layers.linear(x, "mlm.transform")), "mlm")
        words = tf.cast(layers.weights["embeddings.word.weight"], x.dtype)
        return layers.bias(tf.matmul(x, words, transpose_b=True), "mlm")

    def _norm(self, x, name):
        return self.layers.layer_norm(x, name, bert.NORM_EPSILON)


def _gelu(x):
    """The exact one."""
    return 0.5 * x * (1 + tf.math.erf(x * 0.5**0.5))
