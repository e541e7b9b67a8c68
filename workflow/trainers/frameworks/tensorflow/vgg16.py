"""VGG16 for TensorFlow 2 and 1.15; trainers/recipes/vgg16.py says what it is."""

import tensorflow as tf

from trainers.contract.recipe import dropout_of
from trainers.frameworks.tensorflow.layers import cross_entropies, normalized
from trainers.recipes import vgg16


class VGG16:
    def __init__(self, flags, layers):
        self.layers = layers
        self.features = vgg16.features(flags.shape)
        self.dropout = dropout_of(vgg16, flags)

    def __call__(self, images, labels):
        layers = self.layers
        x = normalized(images, layers.dtype)
        for name, *_, pool in vgg16.CONVOLUTIONS:
            x = tf.nn.relu(layers.bias(layers.convolution(x, name), name))
            if pool:
                x = tf.nn.max_pool2d(x, pool, 2, "VALID")
        # The first linear layer is given channels before rows.
        x = tf.reshape(tf.transpose(x, [0, 3, 1, 2]), [-1, self.features])
        for number in (1, 2):
            x = tf.nn.relu(layers.linear(x, f"fc{number}"))
            x = layers.dropout(x, self.dropout, number)
        logits = layers.linear(x, "fc3")
        return tf.reduce_mean(cross_entropies(logits, labels))
