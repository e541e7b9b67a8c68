"""What TensorFlow 1.15 and TensorFlow 2 have in common."""

import numpy as np
import tensorflow as tf

from trainers.contract import backend as contract
from trainers.contract.steplog import Refused


class Eager(contract.Backend):
    """What both compute at once, outside of any graph, on `self.device`."""

    def numbers(self, array):
        with tf.device(self.device):
            return tf.identity(array)


def dense(weights, gradients):
    """A loss's gradients, none of them missing or sparse."""
    for name, gradient in zip(weights, gradients):
        if gradient is None:
            raise Refused(f"the loss does not depend on {name}; allowed: a model of all weights")
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


def start_weights(work):
    """The arrays from which weights start, by name; convolutions are [height, width, in, out]."""
    starts = {name: work.start(name) for name in work.shapes}
    return {
        name: np.ascontiguousarray(one.transpose(2, 3, 1, 0)) if one.ndim == 4 else one
        for name, one in starts.items()
    }
