"""ResNet-50 v1.5, with 25,557,032 parameters, for TensorFlow 2 and 1.15.

It is made of TensorFlow's own fused kernels: Keras 3 computes batch norm from its parts, and in
float32. Images lie as [N, H, W, C]; on a GPU TensorFlow turns them where that is faster.

Source: He et al., Deep Residual Learning for Image Recognition (2015). v1.5 halves the resolution
in a bottleneck's 3x3 convolution, where the paper does so in its first 1x1.
"""

import numpy as np
import resnet50
import tensorflow as tf


class ResNet50:
    """Takes uint8 images of shape [N, H, W, 3], returns float32 logits of shape [N, classes].

    Images arrive as bytes and are normalised here, on the device: a quarter of the traffic.

    Args:
        seed: of the weights, which are float32.
        dtype: what convolutions compute in.
    """

    def __init__(self, seed, dtype=tf.float32):
        self.dtype = dtype
        self.weights = {}  # by their names in resnet50.initial_weights
        self.averages = {}  # running ones, such as "stem.bn.mean" and "stem.bn.variance"
        for name, value in resnet50.initial_weights(seed).items():
            self.weights[name] = tf.Variable(_transposed(value), name=name)
            if name.endswith("bn.bias"):
                norm = name[: -len("bias")]
                self.averages[norm + "mean"] = own_variable(np.zeros_like(value))
                self.averages[norm + "variance"] = own_variable(np.ones_like(value))

    @property
    def parameters(self):
        """The number of all weights."""
        return sum(weight.shape.num_elements() for weight in self.weights.values())

    def __call__(self, images):
        # Padding with zeros pads a maximum of what is never below zero as well.
        x = (tf.cast(images, tf.float32) - resnet50.MEAN) / resnet50.STD
        x = tf.nn.relu(self._conv_bn(tf.cast(x, self.dtype), "stem", stride=2))
        x = tf.nn.max_pool2d(tf.pad(x, _around(1)), 3, 2, "VALID")
        for name, _, _, stride in resnet50.BLOCKS:
            x = self._bottleneck(x, name, stride)
        x = tf.reduce_mean(tf.cast(x, tf.float32), [1, 2])
        return tf.matmul(x, self.weights["fc.weight"]) + self.weights["fc.bias"]

    def _bottleneck(self, x, name, stride):
        """1x1, 3x3 and 1x1 convolutions beside a shortcut."""
        y = tf.nn.relu(self._conv_bn(x, name + ".1"))
        y = tf.nn.relu(self._conv_bn(y, name + ".2", stride))
        y = self._conv_bn(y, name + ".3")
        if name + ".shortcut.conv.weight" in self.weights:
            x = self._conv_bn(x, name + ".shortcut", stride)
        return tf.nn.relu(y + x)

    def _conv_bn(self, x, name, stride=1):
        kernel = tf.cast(self.weights[name + ".conv.weight"], self.dtype)
        size = int(kernel.shape[0])
        if stride == 1:
            x = tf.nn.conv2d(x, kernel, 1, "SAME")
        else:  # where SAME is not symmetric; oneDNN takes no convolution that is told its padding
            x = tf.nn.conv2d(tf.pad(x, _around(size // 2)), kernel, stride, "VALID")
        x, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            x,
            self.weights[name + ".bn.weight"],
            self.weights[name + ".bn.bias"],
            epsilon=resnet50.BATCH_NORM_EPSILON,
        )
        self._average(name + ".bn.mean", mean)
        self._average(name + ".bn.variance", variance)
        return x

    def _average(self, name, new):
        average = self.averages[name]
        update = average.assign_sub((1 - resnet50.BATCH_NORM_MOMENTUM) * (average - new))
        # TensorFlow 2 runs it anyway, 1.15 has to be told.
        tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.UPDATE_OPS, update)

    def loss(self, images, labels):
        """The mean cross entropy of uint8 images [N, H, W, 3] and labels [N]."""
        smooth = resnet50.LABEL_SMOOTHING / resnet50.CLASSES
        targets = tf.one_hot(
            labels,
            resnet50.CLASSES,
            on_value=1 - resnet50.LABEL_SMOOTHING + smooth,
            off_value=smooth,
        )
        return tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=self(images))
        )

    def decay(self):
        """What is added to the loss for its gradient, which decays the weights."""
        decayed = [weight for name, weight in self.weights.items() if resnet50.decays(name)]
        return resnet50.WEIGHT_DECAY * tf.add_n([tf.nn.l2_loss(weight) for weight in decayed])


def own_variable(start):
    """A variable of which each replica has a value of its own, that no gradient reaches."""
    return tf.Variable(
        start,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
    )


def _transposed(value):
    """A weight of resnet50.initial_weights as TensorFlow has it: inputs before outputs."""
    return value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T


def _around(pixels):
    return [[0, 0], [pixels, pixels], [pixels, pixels], [0, 0]]
