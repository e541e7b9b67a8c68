"""What models of images have in common in TensorFlow."""

import tensorflow as tf

from trainers.inputs import images


def normalized(pixels, dtype):
    """uint8 images [N, H, W, 3], normalised in float32 and converted to another type.

    Images arrive as bytes and are normalised on the device: a quarter of the traffic.
    """
    return tf.cast((tf.cast(pixels, tf.float32) - images.MEAN) / images.STD, dtype)
