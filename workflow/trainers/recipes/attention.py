"""What the recipes of text models share: attention and feed-forward layers."""

import numpy as np

from trainers.contract.weights import truncated_normal, uniform

DEVIATION = 0.02  # of the start weights
MASKED = -10000.0  # added to the attention scores of masked tokens


def check_heads(shape):
    hidden, heads = shape["hidden"], shape["heads"]
    if hidden % heads:
        raise ValueError(f"hidden is {hidden}; allowed: a multiple of the {heads} heads")


def learning_rate(global_batch):
    """The same for every batch, and without a warm-up, for which the papers' 3e-4 and nanoGPT's
    6e-4 would be too much at first. Adam's steps never exceed it by much.
    """
    return 1e-4


def decays(name):
    """Matrices decay, embeddings too; biases and layer norms do not."""
    return name.endswith("weight") and ".norm." not in name


def linear(name, inputs, outputs):
    """The weights of a linear layer, [out, in] and [out]."""
    return {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}


def norm(name, features):
    return {name + ".norm.weight": (features,), name + ".norm.bias": (features,)}


def of_heads(name, hidden):
    """The weights of attention's linear layers: one of queries, keys and values, and one after."""
    return {**linear(name + ".qkv", hidden, 3 * hidden), **linear(name + ".out", hidden, hidden)}


def feed_forward(name, hidden, inner):
    return {**linear(name + ".in", hidden, inner), **linear(name + ".out", inner, hidden)}


def start(name, size, random, proof, deviation=DEVIATION):
    """Where a weight starts: a normal distribution cut off at two deviations, biases at zero."""
    # For a proof, the weights are ten times as large, because a model with small weights is nearly
    # linear, and no bias is zero.
    if len(size) == 2:
        return truncated_normal(random, size, 10 * deviation if proof else deviation)
    around = np.float32(name.endswith("weight"))  # a layer norm's weight, or a bias
    if not proof:
        return np.full(size, around, np.float32)
    return around + uniform(random, size, 0.25)
