"""word2vec for TensorFlow 2; trainers/recipes/word2vec.py says what it is."""

import numpy as np
import tensorflow as tf

from trainers.inputs.words import word_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import word2vec


class Word2Vec:
    def __init__(self, flags, layers):
        self.layers = layers

    def __call__(self, centres, contexts, negatives, firsts):
        centre_table, context_table = word2vec.TABLES
        vectors = self.layers.rows(centres, centre_table)
        # The context first, then the negatives: one look-up, and one update of each row.
        others = tf.concat([contexts[:, None], negatives], 1)
        products = tf.reduce_sum(vectors[:, None] * self.layers.rows(others, context_table), 2)
        signs = np.array([-1] + [1] * negatives.shape[1], np.float32)
        return tf.reduce_mean(tf.reduce_sum(tf.nn.softplus(signs * products), 1))
