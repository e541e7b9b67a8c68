"""What training with TensorFlow 1.15 and with TensorFlow 2 have in common."""

import numpy as np
import tensorflow as tf

from trainers.contract.steplog import Refused


def dense(weights, gradients):
    """A loss's gradients, none of them missing or sparse.

    Args:
        weights: variables by name.
        gradients: the loss's, in the order of the weights.

    Raises:
        Refused: the loss does not depend on one of the weights.
    """
    for name, gradient in zip(weights, gradients):
        if gradient is None:
            raise Refused(f"the loss does not depend on {name}; allowed: a model of all weights")
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


def convolved_by(tf, images, filters, run=lambda made: made.numpy()):
    """TensorFlow's convolution without padding, on the device that is chosen.

    Args:
        tf: the TensorFlow.
        images: float32 array [n, in, height, width].
        filters: float32 array [out, in, height, width].
        run: makes an array of a tensor, where execution is not eager.

    Returns:
        A float32 array [n, out, height, width].
    """
    images = tf.constant(images.transpose(0, 2, 3, 1))  # as CPUs have them
    filters = tf.constant(filters.transpose(2, 3, 1, 0))
    made = tf.nn.conv2d(images, filters, strides=1, padding="VALID")
    return run(made).transpose(0, 3, 1, 2)


def arranged(value):
    """A start weight as trainers.frameworks.tensorflow.layers needs it."""
    return np.ascontiguousarray(value.transpose(2, 3, 1, 0)) if value.ndim == 4 else value
