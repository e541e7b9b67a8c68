"""Pairs of sentences for TensorFlow 2 and 1.15, from parts of ids."""

import numpy as np
import tensorflow as tf

from trainers.inputs.pairs import Pairs
from trainers.recipes import transformer


def pair_batches(flags, rank, world_size):
    """An endless tf.data.Dataset of one rank's batches, those of trainers.inputs.pairs."""
    pairs = Pairs(flags.data, flags.shape, flags.batch_size, rank, world_size)
    one = transformer.synthetic_batch(flags.shape, 1, np.random.RandomState(0))
    types = tuple(tf.as_dtype(array.dtype) for array in one)
    batches = tf.data.Dataset.from_generator(
        lambda: iter(pairs), types, tuple(tf.TensorShape([None, None]) for _ in one)
    )
    return batches.prefetch(2)
