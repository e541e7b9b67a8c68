"""Sentences for TensorFlow 2 and 1.15: TFRecords, or parts of ids, through tf.data."""

import numpy as np
import tensorflow as tf

from trainers.inputs.pairs import Pairs
from trainers.inputs.parts import neighbouring_parts
from trainers.inputs.sentences import NAMES
from trainers.recipes import bert, transformer


def tfrecord_sentences(flags, rank, world_size):
    """An endless tf.data.Dataset of one rank's batches, as trainers.inputs.sentences gives them."""
    parts = neighbouring_parts(flags.data, rank, world_size)
    one = bert.synthetic_batch(flags.shape, 1, np.random.RandomState(0))
    fields = {
        name: tf.io.FixedLenFeature(array.shape[1:], array.dtype) for name, array in zip(NAMES, one)
    }

    def parse(records):
        parsed = tf.io.parse_example(records, fields)
        return tuple(parsed[name] for name in NAMES)

    # A batch of records is parsed in one go, which takes a tenth of the time that they take alone.
    return (
        tf.data.TFRecordDataset(list(map(str, parts)))
        .repeat()
        .batch(flags.batch_size, drop_remainder=True)
        .map(parse, flags.loader_threads)
        .prefetch(2)
    )


def pair_batches(flags, rank, world_size):
    """An endless tf.data.Dataset of one rank's batches, as trainers.inputs.pairs gives them."""
    pairs = Pairs(flags.data, flags.shape, flags.batch_size, rank, world_size)
    one = transformer.synthetic_batch(flags.shape, 1, np.random.RandomState(0))
    types = tuple(tf.as_dtype(array.dtype) for array in one)
    batches = tf.data.Dataset.from_generator(
        lambda: iter(pairs), types, tuple(tf.TensorShape([None, None]) for _ in one)
    )
    return batches.prefetch(2)
