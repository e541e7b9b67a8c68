"""Scaling the loss in TensorFlow 2 and 1.15, so that no gradient vanishes in float16."""

import tensorflow as tf

from trainers.contract.precision import DYNAMIC
from trainers.frameworks.tensorflow.layers import own_variable


def make_scale(precision):
    """What has a `value`, by which a backend multiplies the loss and divides its gradients, and
    guard(update, gradients), which updates the weights and returns the operation.
    """
    if precision.loss_scale == DYNAMIC:
        return DynamicLossScale()
    return LossScale(precision.factor)


class LossScale:
    """A fixed factor that keeps float16 gradients from vanishing; 1 does nothing."""

    def __init__(self, value):
        self.value = value

    def guard(self, update, gradients):
        return update(gradients)


class DynamicLossScale:
    """A factor that halves when gradients overflow, and doubles after 2000 steps without.

    Source: Micikevicius et al., Mixed Precision Training (2017).
    """

    def __init__(self, start=2.0**15):
        self.value = own_variable(start)
        self._good_steps = own_variable(0.0)  # TensorFlow averages no whole numbers

    def guard(self, update, gradients):
        """Update the weights if all gradients are finite: averages, the same on all ranks."""
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
        updated = tf.cond(finite, lambda: tf.group(update(gradients)), tf.no_op)
        good = tf.where(finite, self._good_steps + 1, 0.0)
        grows = tf.equal(good, 2000.0)
        factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        return tf.group(
            updated,
            self._good_steps.assign(tf.where(grows, 0.0, good)),
            self.value.assign(self.value * factor),
        )
