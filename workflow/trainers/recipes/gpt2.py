"""GPT-2: a decoder that predicts each next token.

At its small shape it has 124,439,808 parameters: the logits are products with the embedding of
tokens. Start weights are GPT-2's, those of parts that add to a shortcut being smaller by the number
of such parts; optimizer and decay are nanoGPT's.

Sources: Radford et al., Language Models are Unsupervised Multitask Learners (2019); openai/gpt-2's
model.py; nanoGPT's model.py and train.py.
"""

import numpy as np

from trainers.contract.recipe import AdamW
from trainers.contract.weights import truncated_normal, uniform

DEVIATION = 0.02  # of the start weights
NORM_EPSILON = 1e-5
WIDER = 4  # times as many features has a token inside a layer's feed-forward part
SHORTCUTS = 2 * 12  # parts that add to one at the small shape, whatever the number of layers

OPTIMIZER = AdamW(beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0)
STATIC_LOSS_SCALE = 128.0


def check(shape):
    """Refuse heads that cannot share a model's features."""
    hidden, heads = shape["hidden"], shape["heads"]
    if hidden % heads:
        raise ValueError(f"hidden is {hidden}; allowed: a multiple of the {heads} heads")


def learning_rate(global_batch):
    """The same for every batch: without a warm-up nanoGPT's 6e-4 would be too much at first."""
    return 1e-4


def decays(name):
    """Matrices decay, embeddings too; biases and layer norms do not."""
    return name.endswith("weight") and ".norm." not in name


def weight_shapes(shape):
    """The weights in the order in which a token passes them.

    Linear layers are [out, in]; the rows of "attention.qkv" are those of queries, of keys, then of
    values.
    """
    sizes, hidden = {}, shape["hidden"]

    def linear(name, inputs, outputs):
        sizes[name + ".weight"], sizes[name + ".bias"] = (outputs, inputs), (outputs,)

    def norm(name):
        sizes[name + ".norm.weight"] = sizes[name + ".norm.bias"] = (hidden,)

    sizes["embeddings.token.weight"] = (shape["vocabulary"], hidden)
    sizes["embeddings.position.weight"] = (shape["context"], hidden)
    for layer in range(shape["layers"]):
        attention, ffn = f"layer{layer}.attention", f"layer{layer}.ffn"
        norm(attention)
        linear(attention + ".qkv", hidden, 3 * hidden)
        linear(attention + ".out", hidden, hidden)
        norm(ffn)
        linear(ffn + ".in", hidden, WIDER * hidden)
        linear(ffn + ".out", WIDER * hidden, hidden)
    norm("last")
    return sizes


def start(name, size, random, proof):
    """Where a weight starts: a normal distribution cut off at twice its deviation, biases at zero.

    For a proof the weights are ten times as large, for with small ones the model is nearly linear,
    and no bias is zero.
    """
    if len(size) == 2:
        deviation = DEVIATION / SHORTCUTS**0.5 if name.endswith("out.weight") else DEVIATION
        return truncated_normal(random, size, 10 * deviation if proof else deviation)
    around = np.float32(name.endswith("weight"))  # a layer norm's weight, or a bias
    if not proof:
        return np.full(size, around, np.float32)
    return around + uniform(random, size, 0.25)


def counts(batch):
    """The tokens of a batch, of which none is padding."""
    samples, length = batch[0].shape
    return {"tokens": samples * length}


def synthetic_batch(shape, batch_size, random):
    """A batch that is read from nowhere; its arrays are those of trainers.inputs.tokens.

    Returns:
        The tokens of N samples, and the token that follows each, int64 [N, S] both.
    """
    size = batch_size, shape["context"] + 1
    rows = random.randint(shape["vocabulary"], size=size).astype(np.int64)
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])
