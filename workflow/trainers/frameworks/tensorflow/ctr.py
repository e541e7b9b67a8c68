"""CTR-DNN for TensorFlow 2; trainers/recipes/ctr.py says what it is."""

import tensorflow as tf

from trainers.inputs.clicks import click_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import ctr


class CtrDnn:
    def __init__(self, flags, layers):
        self.layers = layers
        self.slots = ctr.SLOTS * flags.shape["embedding"]

    def __call__(self, dense, slots, labels):
        embedded = tf.reshape(self.layers.rows(slots, ctr.TABLE), [-1, self.slots])
        x = tf.concat([embedded, dense], 1)
        weights = self.layers.weights
        for layer in range(1, ctr.LAYERS + 2):
            x = tf.matmul(x, weights[f"fc{layer}.weight"]) + weights[f"fc{layer}.bias"]
            if layer <= ctr.LAYERS:
                x = tf.nn.relu(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
        return tf.reduce_mean(losses)
