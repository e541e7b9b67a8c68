"""Llama 3: a decoder of RMS norms, rotated positions, grouped queries and gated linear layers.

At 32 layers of 4,096 features it has 8,030,261,248 parameters. Nothing has a bias, nothing drops
out. Start weights have torchtitan's distributions. Optimizer, decay and clipping are as in the
paper and in torchtitan. Sources: Dubey et al., The Llama 3 Herd of Models (2024), tables 3 and 4;
meta-llama/llama-models, models/llama3/model.py; pytorch/torchtitan, models/llama3; Su et al.,
RoFormer (2021).
"""

import math

import numpy as np

from trainers.contract.recipe import AdamW, operations
from trainers.contract.weights import truncated_normal, uniform
from trainers.recipes.attention import DEVIATION, check_heads, decays, learning_rate
from trainers.recipes.gpt2 import counts, synthetic_batch

__all__ = ["counts", "decays", "learning_rate", "synthetic_batch"]

NORM_EPSILON = 1e-5
THETA = 500000.0  # the slowest rotation takes 2 pi times as many tokens for a turn
LONGEST_BEFORE = 8192  # tokens of a sample in Llama 3, from which 3.1 was stretched
SLOW, FAST = 1.0, 4.0  # turns in that many tokens: slower ones are stretched, faster ones are not

OPTIMIZER = AdamW(beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0)

DIVIDED = {
    "shard": ("hidden",),
    "tensor": ("context", "heads", "key_heads", "intermediate", "vocabulary"),
}


def check(shape):
    check_heads(shape)
    heads, groups = shape["heads"], shape["key_heads"]
    if heads % groups:
        raise ValueError(f"key_heads is {groups}; allowed: a divisor of the {heads} heads")
    if shape["hidden"] // heads % 2:
        allowed = "an even number of features for each head"
        raise ValueError(f"hidden is {shape['hidden']}; allowed: {allowed}")


def weight_shapes(shape):
    """The weights in the order in which a token passes them. Linear layers are [out, in]."""
    # A layer is attention, then gated linear layers, each after a norm and beside a shortcut.
    # Queries, keys and values have matrices of their own, whose rows ranks can share.
    hidden, wide = shape["hidden"], shape["intermediate"]
    few = hidden // shape["heads"] * shape["key_heads"]
    sizes = {"embeddings.token.weight": (shape["vocabulary"], hidden)}
    for layer in range(shape["layers"]):
        sizes[f"layer{layer}.attention.norm.weight"] = (hidden,)
        for name, rows in {"query": hidden, "key": few, "value": few, "out": hidden}.items():
            sizes[f"layer{layer}.attention.{name}.weight"] = (rows, hidden)
        sizes[f"layer{layer}.ffn.norm.weight"] = (hidden,)
        sizes[f"layer{layer}.ffn.gate.weight"] = (wide, hidden)
        sizes[f"layer{layer}.ffn.in.weight"] = (wide, hidden)
        sizes[f"layer{layer}.ffn.out.weight"] = (hidden, wide)
    sizes["last.norm.weight"] = (hidden,)
    if shape["embeddings"] == 2:
        sizes["logits.weight"] = (shape["vocabulary"], hidden)
    return sizes


def start(name, size, random, proof):
    """A normal distribution cut off at twice its deviation; norms are one."""
    # For a proof matrices are ten times as large, and norms differ.
    if len(size) == 1:
        ones = np.ones(size, np.float32)
        return ones + uniform(random, size, 0.25) if proof else ones
    deviation = DEVIATION
    if name.endswith(".out.weight"):
        depth = int(name.split(".")[0][len("layer") :])
        deviation /= (2 * (depth + 1)) ** 0.5
    return truncated_normal(random, size, 10 * deviation if proof else deviation)


def rotations(shape):
    """Cosines and sines by which two features of a head are rotated: float32 [S, F / 2] each."""
    # Feature i goes with i + F / 2, as in transformers; Meta's code pairs neighbours, which is the
    # same model with rows of queries and keys in another order.
    count = shape["hidden"] // shape["heads"] // 2
    turns = THETA ** -(np.arange(count) / count)  # radians a token
    if shape["stretch"] > 1:
        turns = stretched(turns, shape["stretch"])
    angles = np.outer(np.arange(shape["context"]), turns)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def stretched(turns, factor):
    """Llama 3.1's frequencies: slow ones are divided by a factor, those in between by less."""
    length = 2 * math.pi / turns
    share = np.clip((LONGEST_BEFORE / length - SLOW) / (FAST - SLOW), 0.0, 1.0)
    return (1 - share) * turns / factor + share * turns


def flops(shape):
    """Of a sample, forward and backward, attention by its causal half."""
    sizes = weight_shapes(shape).values()
    multiplied = sum(size[0] * size[1] for size in sizes if len(size) == 2)
    if shape["embeddings"] == 2:
        multiplied -= shape["vocabulary"] * shape["hidden"]  # whose rows are only looked up
    context = shape["context"]
    return operations(context * (multiplied + shape["layers"] * shape["hidden"] * context))


def kept_bytes(shape, halves, recompute):
    """Bytes of features that a sample keeps for its gradients, about; what compilers fuse is less.

    Of each layer what goes into its norms, products, attention and gate, then logits: as such, in
    float32, and their gradient. It recomputes "all", or "some": products and attention are kept.
    """
    hidden, wide, layers = shape["hidden"], shape["intermediate"], shape["layers"]
    few = hidden // shape["heads"] * shape["key_heads"]
    each = 2 if halves else 4
    of_layer = 6 * hidden + 2 * few + 4 * wide
    kept = {None: of_layer, "some": 5 * hidden + 2 * few + 2 * wide, "all": hidden}[recompute]
    features = layers * kept + (of_layer if recompute else 0)
    return shape["context"] * (each * features + (each + 8) * shape["vocabulary"])
