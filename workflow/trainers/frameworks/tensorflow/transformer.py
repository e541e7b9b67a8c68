"""The Transformer for TensorFlow 2 and 1.15; recipes/transformer.py says what it is."""

import tensorflow as tf

from trainers.contract.recipe import dropout_of
from trainers.frameworks.tensorflow.layers import attended, cross_entropies, heads_of
from trainers.recipes import transformer


class Transformer:
    """Features of all tokens are rows, [N L, H], but inside of attention."""

    def __init__(self, flags, layers):
        self.layers = layers
        self.shape = flags.shape
        self.rate = dropout_of(transformer, flags)
        self.positions = transformer.positions(flags.shape)

    def __call__(self, source, real, target, following, weights):
        layers, dropout = self.layers, self.layers.dropping(self.rate)
        length = tf.shape(source)[1]
        # Added to scores: [N, 1, 1, L], the same for all heads and all queries; [L, L].
        mask = tf.cast(1 - real, layers.dtype)[:, tf.newaxis, tf.newaxis, :]
        mask *= transformer.MASKED
        every = tf.ones([length, length], layers.dtype)
        later = (every - tf.linalg.band_part(every, -1, 0)) * transformer.MASKED
        memory = dropout(self._embedded(source, length))
        for layer in range(self.shape["layers"]):
            memory = self._attention(memory, mask, f"encoder{layer}.attention", dropout)
            memory = self._ffn(memory, f"encoder{layer}.ffn", dropout)
        memory = self._norm(memory, "encoder")
        x = dropout(self._embedded(target, length))
        for layer in range(self.shape["layers"]):
            x = self._attention(x, later, f"decoder{layer}.attention", dropout)
            x = self._cross(x, memory, mask, f"decoder{layer}.cross", dropout)
            x = self._ffn(x, f"decoder{layer}.ffn", dropout)
        x = self._norm(x, "decoder")
        words = tf.cast(layers.weights["embeddings.word.weight"], x.dtype)
        logits = tf.matmul(x, words, transpose_b=True)
        losses = _smoothed(logits, tf.reshape(following, [-1]))
        return tf.reduce_sum(losses * tf.reshape(weights, [-1])) / tf.reduce_sum(weights)

    def _embedded(self, tokens, length):
        """Tokens [N, L] -> rows."""
        hidden = self.shape["hidden"]
        x = self.layers.embedding(tokens, "embeddings.word") * hidden**0.5
        return tf.reshape(x + tf.cast(tf.constant(self.positions)[:length], x.dtype), [-1, hidden])

    def _attention(self, x, mask, name, dropout):
        fused = self.layers.linear(self._norm(x, name), name + ".qkv")
        heads = heads_of(fused, tf.shape(mask)[-1], 3, self.shape["heads"])
        return self._out(x, attended(*heads, mask, dropout), name, dropout)

    def _cross(self, x, memory, mask, name, dropout):
        layers, heads, length = self.layers, self.shape["heads"], tf.shape(mask)[-1]
        (query,) = heads_of(layers.linear(self._norm(x, name), name + ".query"), length, 1, heads)
        key, value = heads_of(layers.linear(memory, name + ".kv"), length, 2, heads)
        return self._out(x, attended(query, key, value, mask, dropout), name, dropout)

    def _ffn(self, x, name, dropout):
        inside = dropout(tf.nn.relu(self.layers.linear(self._norm(x, name), name + ".in")))
        return self._out(x, inside, name, dropout)

    def _out(self, x, inside, name, dropout):
        return x + dropout(self.layers.linear(inside, name + ".out"))

    def _norm(self, x, name):
        return self.layers.layer_norm(x, name, transformer.NORM_EPSILON)


def _smoothed(logits, labels):
    """The cross-entropies of rows of logits with smoothed labels, of which none is made dense."""
    logits, share = tf.cast(logits, tf.float32), transformer.LABEL_SMOOTHING
    of_all = tf.reduce_logsumexp(logits, -1) - tf.reduce_mean(logits, -1)
    return (1 - share) * cross_entropies(logits, labels) + share * of_all
