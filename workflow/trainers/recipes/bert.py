"""BERT pretraining: masked tokens are predicted, and whether a sentence follows another.

At its base shape it has 110,106,428 parameters: the decoder of masked tokens is the word embedding,
with a bias of its own. It is google-research/bert's model, with the bias correction that its
optimizer lacks. Sources: Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding (2018); google-research/bert's modeling.py and run_pretraining.py.
"""

import numpy as np

from trainers.contract.recipe import AdamW, operations
from trainers.recipes import attention
from trainers.recipes.attention import MASKED, decays, learning_rate, linear, norm, start

__all__ = ["MASKED", "decays", "learning_rate", "start"]

DROPOUT = 0.1  # of embeddings, attention's weights and each part's output
NORM_EPSILON = 1e-12
PREDICTIONS_EPSILON = 1e-5  # is added to the number of predictions that a loss is divided by
SEGMENTS = 2  # and as many classes of the prediction that one sentence follows the other

OPTIMIZER = AdamW(beta1=0.9, beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip=1.0)

MASKED_SHARE = 0.15
SHORT = 8
"""Of synthetic sequences every eighth is short, so that of all tokens some 6 % are padding."""
AROUND = 3  # tokens that are never predicted: one before the sentences, one after each


def check(shape):
    length, positions = shape["sequence_length"], shape["positions"]
    if length > positions:
        raise ValueError(f"sequence_length is {length}; allowed: up to the {positions} positions")
    most = length - AROUND
    if shape["max_predictions"] > most:
        allowed = f"up to {most} in a sequence_length of {length}"
        raise ValueError(f"max_predictions is {shape['max_predictions']}; allowed: {allowed}")
    attention.check_heads(shape)


def weight_shapes(shape):
    """The weights in the order in which a token passes them.

    A layer is attention, then two linear layers, each beside a shortcut and before a layer norm.
    Linear layers are [out, in]; the rows of "attention.qkv" are those of queries, of keys, then of
    values. "mlm" predicts masked tokens with the word embedding and "mlm.bias", "nsp" from "pooler"
    whether the second sentence follows the first.
    """
    hidden, inner = shape["hidden"], shape["intermediate"]
    sizes = {
        "embeddings.word.weight": (shape["vocabulary"], hidden),
        "embeddings.position.weight": (shape["positions"], hidden),
        "embeddings.segment.weight": (SEGMENTS, hidden),
    }
    sizes.update(norm("embeddings", hidden))
    for layer in range(shape["layers"]):
        attends, ffn = f"layer{layer}.attention", f"layer{layer}.ffn"
        sizes.update({**attention.of_heads(attends, hidden), **norm(attends, hidden)})
        sizes.update({**attention.feed_forward(ffn, hidden, inner), **norm(ffn, hidden)})
    sizes.update(linear("pooler", hidden, hidden))
    sizes.update(linear("mlm.transform", hidden, hidden))
    sizes.update(norm("mlm", hidden))
    sizes["mlm.bias"] = (shape["vocabulary"],)
    sizes.update(linear("nsp", hidden, SEGMENTS))
    return sizes


def flops(shape):
    """Operations to train on a sentence pair, its padding included."""
    hidden, length = shape["hidden"], shape["sequence_length"]
    of_token = 4 * hidden**2 + 2 * hidden * shape["intermediate"] + 2 * length * hidden
    of_prediction = hidden**2 + hidden * shape["vocabulary"]
    once = hidden**2 + SEGMENTS * hidden
    products = shape["layers"] * length * of_token + shape["max_predictions"] * of_prediction
    return operations(products + once)


def counts(batch):
    """The real tokens of a batch, for a rate that is computed from padding would not be one."""
    return {"tokens": batch[1].sum()}


def synthetic_batch(shape, batch_size, random):
    """A batch that is read from nowhere; its arrays are those of trainers.inputs.sentences."""
    length, most = shape["sequence_length"], shape["max_predictions"]
    lengths = np.full(batch_size, length)
    short = lengths[::SHORT]
    short[:] = random.randint(AROUND + 2, length, size=len(short))
    first = random.randint(2, lengths - 1)  # tokens of the first sentence, with what surrounds it
    places = np.arange(length)
    real = places < lengths[:, None]
    segments = real & (places >= first[:, None])
    tokens = random.randint(1, shape["vocabulary"], size=real.shape) * real

    predicted = np.clip(np.round(lengths * MASKED_SHARE), 1, most)
    weights = np.arange(most) < predicted[:, None]
    inside = (places > 0) & (places < lengths[:, None] - 1)
    drawn = np.where(inside, random.random_sample(real.shape), 2.0).argsort(axis=1)[:, :most]
    # Those beyond its own come last in the sorted order, and become 0.
    positions = np.sort(np.where(weights, drawn, length), axis=1) * weights
    ids = random.randint(1, shape["vocabulary"], size=weights.shape) * weights
    following = random.randint(SEGMENTS, size=batch_size)
    whole = [array.astype(np.int64) for array in (tokens, real, segments, positions, ids)]
    return (*whole, weights.astype(np.float32), following.astype(np.int64))
