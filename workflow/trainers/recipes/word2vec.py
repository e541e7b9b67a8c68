"""word2vec: skip-gram with negative sampling, two tables of word vectors.

A pair's loss is softplus(-v.u) for the vector v of its centre word and u of its context, plus
softplus(v.n) for the vector n of each of its negatives. Start vectors are word2vec's: small ones of
centre words, zeros for contexts. FleetX's model has biases besides, and negatives that a whole
batch shares. Source: Mikolov et al., Distributed Representations of Words and Phrases and their
Compositionality (2013), and its code.
"""

import numpy as np

from trainers.contract.recipe import Sgd, operations
from trainers.contract.weights import uniform

OPTIMIZER = Sgd(momentum=0.0, weight_decay=0.0)
TABLES = ("centre.weight", "context.weight")
RATE_OF_PAIR = 0.04


def check(shape):
    """Any shape will do."""


def learning_rate(global_batch):
    """The loss is a mean, and two pairs seldom share a row: it grows with the batch."""
    return RATE_OF_PAIR * global_batch


def decays(name):
    return False


def weight_shapes(shape):
    """The vectors of centre words, and those of their contexts and negatives."""
    return dict.fromkeys(TABLES, (shape["vocabulary"], shape["width"]))


def start(name, size, random, proof):
    if proof:
        # Products of two vectors have a standard deviation of 4/3, however wide they are.
        return uniform(random, size, 2 * size[1] ** -0.25)
    if name == "context.weight":
        return np.zeros(size, np.float32)
    return uniform(random, size, 0.5 / size[1])


def flops(shape):
    """Operations to train on a pair: products of vectors; looking up rows costs none."""
    return operations((1 + shape["negatives"]) * shape["width"])


def counts(batch):
    """The centre words of which a batch has the first pair."""
    return {"words": int(batch[3].sum())}


def synthetic_batch(shape, batch_size, random):
    """A batch that is read from nowhere; its arrays are those of trainers.inputs.words."""
    each = shape["window"] + 1  # pairs of a word, on average, where its line goes on
    size = -(-batch_size // each), 1
    centres = np.broadcast_to(random.randint(shape["vocabulary"], size=size), (size[0], each))
    contexts, negatives = (
        random.randint(shape["vocabulary"], size=size).astype(np.int64)
        for size in (batch_size, (batch_size, shape["negatives"]))
    )
    firsts = np.arange(batch_size) % each == 0
    return centres.ravel()[:batch_size].astype(np.int64), contexts, negatives, firsts
