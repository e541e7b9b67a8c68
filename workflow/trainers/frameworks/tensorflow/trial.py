"""What the doctor asks of TensorFlow 2 and 1.15."""

import tensorflow as tf

from trainers.contract import trial


class Trial(trial.Trial):
    def convolve(self, images, filters):
        with tf.device(self.backend.device):
            images = tf.transpose(images, [0, 2, 3, 1])  # as CPUs have them
            found = tf.nn.conv2d(images, tf.transpose(filters, [2, 3, 1, 0]), 1, "VALID")
            return tf.transpose(found, [0, 3, 1, 2])

    def multiply(self, left, right):
        with tf.device(self.backend.device):
            return tf.matmul(left, right)

    def cast(self, numbers, dtype):
        with tf.device(self.backend.device):
            return tf.cast(numbers, dtype)
