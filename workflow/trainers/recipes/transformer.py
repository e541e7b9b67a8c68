"""The Transformer: an encoder reads a sentence, a decoder predicts each token of its translation.

At its base shape it has 60,524,544 parameters: one table embeds sources and targets, and gives the
logits. Layer norms come before each part and after the last layers. A sample is a place for a token
of a target; a batch has as many for tokens of sources. Sources:
Vaswani et al., Attention Is All You Need (2017); tensor2tensor's transformer.py and
common_attention.py; PaddlePaddle/models' Transformer, which FleetX runs.
"""

import numpy as np

from trainers.contract.recipe import AdamW, operations
from trainers.inputs.pairs import STEP
from trainers.recipes import attention
from trainers.recipes.attention import DEVIATION, MASKED, decays, learning_rate, linear, norm
from trainers.recipes.attention import check_heads as check

__all__ = ["MASKED", "check", "decays", "learning_rate"]

DROPOUT = 0.1  # of embeddings, attention's weights, each part's output and inside of feed-forward
LABEL_SMOOTHING = 0.1
NORM_EPSILON = 1e-5
SLOWEST = 1e4
"""The sine of the lowest frequency has this many times the period of the highest."""

OPTIMIZER = AdamW(beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.0, clip=None)

SYNTHETIC = 4  # synthetic sentences are padded to the longest one's length divided by this


def weight_shapes(shape):
    """The weights in the order in which a token passes them.

    Linear layers are [out, in]; the rows of "qkv" are those of queries, of keys, then of values,
    and of "kv" those of keys, then of values. "cross" attends to the encoder's output.
    """
    hidden, inner = shape["hidden"], shape["intermediate"]
    sizes = {"embeddings.word.weight": (shape["vocabulary"], hidden)}
    for side in ("encoder", "decoder"):
        for layer in range(shape["layers"]):
            name = f"{side}{layer}."
            attends, cross, ffn = name + "attention", name + "cross", name + "ffn"
            sizes.update({**norm(attends, hidden), **attention.of_heads(attends, hidden)})
            if side == "decoder":
                sizes.update({**norm(cross, hidden), **linear(cross + ".query", hidden, hidden)})
                sizes.update(linear(cross + ".kv", hidden, 2 * hidden))
                sizes.update(linear(cross + ".out", hidden, hidden))
            sizes.update({**norm(ffn, hidden), **attention.feed_forward(ffn, hidden, inner)})
        sizes.update(norm(side, hidden))
    return sizes


def start(name, size, random, proof):
    """As attention.start, but with a deviation that keeps the variance of the input."""
    deviation = DEVIATION if proof else size[-1] ** -0.5
    return attention.start(name, size, random, proof, deviation)


def positions(shape):
    """What is added to the embedding of a token at each position: float32 [longest, hidden]."""
    # Sines of falling frequencies, then their cosines; an odd number of features ends with a 0.
    length, hidden = shape["longest"], shape["hidden"]
    count = hidden // 2
    frequencies = SLOWEST ** (-np.arange(count) / max(1, count - 1))
    angles = np.arange(length)[:, None] * frequencies
    table = np.zeros((length, hidden), np.float32)
    table[:, : 2 * count] = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return table


def flops(shape):
    """Operations to train on a place of pairs as long as synthetic ones, padding included."""
    # The decoder's attention to itself counts by the half that a causal mask leaves.
    hidden, length = shape["hidden"], max(1, shape["longest"] // SYNTHETIC)
    of_layers = 12 * hidden**2 + 4 * hidden * shape["intermediate"] + 5 * length * hidden
    return operations(shape["layers"] * of_layers + hidden * shape["vocabulary"])


def counts(batch):
    """The real tokens of a batch's targets, with their ends, and the places that it computes."""
    return {"tokens": batch[4].sum(), "places": batch[4].size}


def synthetic_batch(shape, batch_size, random):
    """A generated batch, with the arrays that trainers.inputs.pairs reads."""
    length = max(1, min(shape["longest"] // SYNTHETIC, batch_size))
    size = batch_size // length, length
    tokens = random.randint(1, shape["vocabulary"], size=(2, *size))
    lengths = random.randint(max(1, length - STEP + 1), length + 1, size=(2, size[0], 1))
    real = np.arange(length) < lengths
    source, following = (tokens * real).astype(np.int64)
    target = np.zeros(size, np.int64)
    target[:, 1:] = following[:, :-1]
    return source, real[0].astype(np.int64), target, following, real[1].astype(np.float32)
