"""ResNet-50 v1.5 for TensorFlow 2 and 1.15; trainers/recipes/resnet50.py says what it is."""

import numpy as np
import tensorflow as tf

from trainers.frameworks.tensorflow.layers import normalized, own_variable, padded
from trainers.recipes import resnet50


class ResNet50:
    def __init__(self, flags, layers):
        self.layers = layers
        self.averages = {}  # running ones, such as "stem.bn.mean" and "stem.bn.variance"
        for name, size in resnet50.weight_shapes(flags.shape).items():
            if name.endswith("bn.bias"):
                norm = name[: -len("bias")]
                self.averages[norm + "mean"] = own_variable(np.zeros(size, np.float32))
                self.averages[norm + "variance"] = own_variable(np.ones(size, np.float32))

    def __call__(self, images, labels):
        x = normalized(images, self.layers.dtype)
        x = tf.nn.relu(self._conv_bn(x, "stem", stride=2))
        # Zeros do for padding here: the maximum is over values that are never negative.
        x = tf.nn.max_pool2d(padded(x, 1), 3, 2, "VALID")
        for name, _, _, stride in resnet50.BLOCKS:
            x = self._bottleneck(x, name, stride)
        logits = self.layers.linear(tf.reduce_mean(tf.cast(x, tf.float32), [1, 2]), "fc")
        smooth = resnet50.LABEL_SMOOTHING / resnet50.CLASSES
        own = 1 - resnet50.LABEL_SMOOTHING + smooth
        targets = tf.one_hot(labels, resnet50.CLASSES, on_value=own, off_value=smooth)
        losses = tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        return tf.reduce_mean(losses)

    def _bottleneck(self, x, name, stride):
        y = tf.nn.relu(self._conv_bn(x, name + ".1"))
        y = tf.nn.relu(self._conv_bn(y, name + ".2", stride))
        y = self._conv_bn(y, name + ".3")
        if name + ".shortcut.conv.weight" in self.layers.weights:
            x = self._conv_bn(x, name + ".shortcut", stride)
        return tf.nn.relu(y + x)

    def _conv_bn(self, x, name, stride=1):
        x, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            self.layers.convolution(x, name + ".conv", stride),
            self.layers.weights[name + ".bn.weight"],
            self.layers.weights[name + ".bn.bias"],
            epsilon=resnet50.BATCH_NORM_EPSILON,
        )
        self._average(name + ".bn.mean", mean)
        self._average(name + ".bn.variance", variance)
        return x

    def _average(self, name, new):
        average = self.averages[name]
        update = average.assign_sub((1 - resnet50.BATCH_NORM_MOMENTUM) * (average - new))
        # TensorFlow 2 runs it anyway; 1.15 must be told to.
        tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.UPDATE_OPS, update)
