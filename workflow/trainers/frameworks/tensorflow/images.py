"""What models of images have in common in TensorFlow."""

import tensorflow as tf

from trainers.inputs import images


def normalized(pixels, dtype):
    """uint8 images [N, H, W, 3], normalised in float32 and converted to another type."""
    return tf.cast((tf.cast(pixels, tf.float32) - images.MEAN) / images.STD, dtype)
