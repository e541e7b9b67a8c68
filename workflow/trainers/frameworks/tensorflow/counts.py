"""What batches count besides samples, such as tokens, in TensorFlow 2 and 1.15.

Their batches never pass through Python, so each brings its counts along.
"""

import numpy as np
import tensorflow as tf


class Counter:
    """Counts batches as a recipe says."""

    def __init__(self, recipe, shape):
        self._of = getattr(recipe, "counts", None)
        self.units = []  # the names of what is counted
        if self._of:
            batch = recipe.synthetic_batch(shape, 1, np.random.RandomState(0))
            self.units = list(self._of(batch))

    def with_counts(self, batch):
        """A batch of arrays, and behind them its counts, int64."""
        return (*batch, *self._count(*batch))

    def _count(self, *batch):
        counts = self._of(batch) if self.units else {}
        return [np.int64(counts[unit]) for unit in self.units]

    def with_counts_of_each(self, dataset):
        """A tf.data.Dataset of batches, each as with_counts has it."""
        if not self.units:
            return dataset

        def with_counts(*batch):
            counts = tf.numpy_function(self._count, batch, [tf.int64] * len(self.units))
            for one in counts:
                one.set_shape([])
            return (*batch, *counts)

        return dataset.map(with_counts)

    def split(self, batch):
        """The batch, and its counts."""
        end = len(batch) - len(self.units)
        return batch[:end], batch[end:]

    def named(self, sums):
        """Sums of counts by their units."""
        return dict(zip(self.units, map(int, sums)))
