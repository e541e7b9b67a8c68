"""GPT-2: a decoder that predicts each next token.

At its small shape it has 124,439,808 parameters: logits are products with the tokens' embedding.
Optimizer and decay are nanoGPT's. Sources: Radford et al., Language Models are Unsupervised
Multitask Learners (2019); openai/gpt-2's model.py; nanoGPT's model.py and train.py.
"""

import numpy as np

from trainers.contract.recipe import AdamW, operations
from trainers.recipes import attention
from trainers.recipes.attention import DEVIATION, decays, learning_rate, norm
from trainers.recipes.attention import check_heads as check

__all__ = ["check", "decays", "learning_rate"]

NORM_EPSILON = 1e-5
WIDER = 4  # times as many features has a token inside a layer's feed-forward part
SHORTCUTS = 2 * 12  # parts that add to one at the small shape, whatever the number of layers

OPTIMIZER = AdamW(beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0)


def weight_shapes(shape):
    """The weights in the order in which a token passes them.

    A layer is attention, then two linear layers, each after a layer norm and beside a shortcut.
    Linear layers are [out, in]; the rows of "attention.qkv" are those of queries, of keys, then of
    values.
    """
    hidden = shape["hidden"]
    sizes = {
        "embeddings.token.weight": (shape["vocabulary"], hidden),
        "embeddings.position.weight": (shape["context"], hidden),
    }
    for layer in range(shape["layers"]):
        attends, ffn = f"layer{layer}.attention", f"layer{layer}.ffn"
        sizes.update({**norm(attends, hidden), **attention.of_heads(attends, hidden)})
        sizes.update({**norm(ffn, hidden), **attention.feed_forward(ffn, hidden, WIDER * hidden)})
    sizes.update(norm("last", hidden))
    return sizes


def start(name, size, random, proof):
    """As attention.start, but smaller in parts that add to a shortcut."""
    deviation = DEVIATION / SHORTCUTS**0.5 if name.endswith("out.weight") else DEVIATION
    return attention.start(name, size, random, proof, deviation)


def flops(shape):
    """Operations to train on a sample: of attention the half that a causal mask leaves."""
    context, hidden = shape["context"], shape["hidden"]
    of_token = 4 * hidden**2 + 2 * WIDER * hidden**2 + context * hidden
    return operations(context * (shape["layers"] * of_token + hidden * shape["vocabulary"]))


def counts(batch):
    """The tokens of a batch, of which none is padding."""
    samples, length = batch[0].shape
    return {"tokens": samples * length}


def synthetic_batch(shape, batch_size, random):
    """A batch that is read from nowhere; its arrays are those of trainers.inputs.tokens."""
    size = batch_size, shape["context"] + 1
    rows = random.randint(shape["vocabulary"], size=size).astype(np.int64)
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])
