"""What models are made of in TensorFlow 2 and 1.15: its own fused kernels, of images [N, H, W, C].

Keras 3 computes batch norm from its parts, and in float32.
"""

import itertools

import numpy as np
import tensorflow as tf

from trainers.inputs import images


class Layers:
    """Layers that compute in the type of their input, with float32 weights.

    Weights are variables by their names in the recipe; convolutions are [height, width, in, out],
    all others have the recipe's sizes. Most of a model computes in `dtype`.
    """

    def __init__(self, weights, dtype=tf.float32):
        self.weights = weights
        self.dtype = dtype
        # Two int32 numbers of this rank and iteration, which the backend sets; None: no dropout.
        self.seed = None

    def convolution(self, x, name, stride=1):
        """Convolve images [N, H, W, in], padded by half the kernel's size; without a bias."""
        kernel = tf.cast(self.weights[name + ".weight"], x.dtype)
        if stride == 1:
            return tf.nn.conv2d(x, kernel, 1, "SAME")
        # SAME would not be symmetric here, and oneDNN takes no convolution with explicit padding.
        return tf.nn.conv2d(padded(x, int(kernel.shape[0]) // 2), kernel, stride, "VALID")

    def bias(self, x, name):
        return tf.nn.bias_add(x, tf.cast(self.weights[name + ".bias"], x.dtype))

    def linear(self, x, name):
        """Multiply rows [N, in] by a matrix [out, in], and add a bias."""
        matrix = tf.cast(self.weights[name + ".weight"], x.dtype)
        return self.bias(tf.matmul(x, matrix, transpose_b=True), name)

    def embedding(self, indices, name):
        """The rows of a matrix that indices, of any shape, name: one more axis."""
        matrix = self.weights[name + ".weight"]
        # What passes a reshape has a dense gradient: else, where the matrix multiplies, too, that
        # product's gradient would be appended to the rows', and all of them sorted.
        rows = tf.gather(tf.reshape(matrix, matrix.shape), indices)
        return tf.cast(rows, self.dtype)

    def layer_norm(self, x, name, epsilon):
        """Normalise the last axis, in float32."""
        # In TensorFlow 1.15, fused_batch_norm would raise BERT's smaller epsilon to 1.001e-5.
        wide = tf.cast(x, tf.float32)
        mean, variance = tf.nn.moments(wide, [-1], keepdims=True)
        weight, bias = (self.weights[f"{name}.norm.{part}"] for part in ("weight", "bias"))
        wide = tf.nn.batch_normalization(wide, mean, variance, bias, weight, epsilon)
        return tf.cast(wide, x.dtype)

    def dropout(self, x, rate, number):
        """Set a share of `x` to zero, a different one on every rank and in every iteration."""
        # The number, from 0 to 4095, tells the layers of a model apart.
        if not rate or self.seed is None:
            return x
        # Drawn from a seed, because XLA's own generator starts the same on all ranks.
        seed = self.seed + np.array([0, number << 20], np.uint32).astype(np.int32)
        kept = tf.random.stateless_uniform(tf.shape(x), seed) >= rate
        return x * (tf.cast(kept, x.dtype) / (1 - rate))

    def dropping(self, rate):
        """What drops out a share of each `x` that it is called with, for one pass of a model."""
        numbers = itertools.count()
        return lambda x: self.dropout(x, rate, next(numbers))


def normalized(pixels, dtype):
    """uint8 images [N, H, W, 3], normalised in float32 and converted to another type."""
    return tf.cast((tf.cast(pixels, tf.float32) - images.MEAN) / images.STD, dtype)


def heads_of(rows, length, parts, heads):
    """What a fused linear layer gave, [N S, parts H], as `parts` of [N, heads, S, H / heads]."""
    size = int(rows.shape[-1]) // (parts * heads)
    fused = tf.reshape(rows, [-1, length, parts, heads, size])
    return tf.unstack(tf.transpose(fused, [2, 0, 3, 1, 4]), parts)


def attended(query, key, value, mask, dropout):
    """Features [N S, H] of what each query attends to, from [N, heads, S, H / heads].

    The mask is added to the scores; `dropout` takes and returns the weights of attention.
    """
    heads, size = (int(extent) for extent in (query.shape[1], query.shape[3]))
    scores = tf.matmul(query * size**-0.5, key, transpose_b=True) + mask
    found = tf.matmul(dropout(tf.nn.softmax(scores)), value)
    return tf.reshape(tf.transpose(found, [0, 2, 1, 3]), [-1, heads * size])


def cross_entropies(logits, labels):
    """Of each row of logits, in float32."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)
    )


def padded(x, pixels):
    """Images [N, H, W, C] with zeros around them."""
    return tf.pad(x, [[0, 0], [pixels, pixels], [pixels, pixels], [0, 0]])


def own_variable(start):
    """A variable without gradient, of which each replica has its own value."""
    return tf.Variable(
        start,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
    )
