"""What VGG16 and AlexNet have in common in JAX: layers by the names of their weights."""

import jax

from trainers.frameworks.jax.layers import convolution, cross_entropy, linear


def convolved(x, weights, name, stride=1, padding=0):
    x = convolution(x, weights[name + ".weight"], stride, padding)
    return jax.nn.relu(x + weights[name + ".bias"].astype(x.dtype))


def flattened(x):
    """Features [N, H, W, C] in one row each, channels before rows."""
    return x.transpose(0, 3, 1, 2).reshape(len(x), -1)


def hidden(x, weights, name):
    return jax.nn.relu(linear(x, weights[name + ".weight"], weights[name + ".bias"]))


def loss_of(x, labels, weights):
    """The mean cross-entropy of what the last linear layer makes of features."""
    return cross_entropy(linear(x, weights["fc3.weight"], weights["fc3.bias"]), labels).mean()
