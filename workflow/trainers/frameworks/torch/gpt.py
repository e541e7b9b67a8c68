"""GPT-2 for PyTorch; trainers/recipes/gpt2.py says what it is."""

import math

import torch
from torch import nn
from torch.nn import functional

from trainers.frameworks.torch.attention import Attention
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import gpt2

LANES = 64
"""Matrix units are fastest if the length of rows is a multiple of this."""


class Gpt(nn.Module):
    """Takes tokens and those that follow each [N, S], returns their mean cross-entropy."""

    def __init__(self, flags):
        super().__init__()
        shape = flags.shape
        self.token = nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.position = nn.Embedding(shape["context"], shape["hidden"])
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape["layers"])])
        self.norm = _norm(shape)

    def forward(self, tokens, following):
        x = self.token(tokens) + self.position.weight
        for layer in self.layers:
            x = layer(x)
        logits = products(self.norm(x), self.token.weight)
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


class Layer(nn.Module):
    """Attention, then two linear layers, each behind a layer norm and beside a shortcut."""

    def __init__(self, shape):
        super().__init__()
        hidden, wide = shape["hidden"], gpt2.WIDER * shape["hidden"]
        self.attention_norm = _norm(shape)
        self.attention = Attention(shape)
        self.ffn_norm = _norm(shape)
        self.ffn_in = nn.Linear(hidden, wide)
        self.ffn_out = nn.Linear(wide, hidden)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        inside = functional.gelu(self.ffn_in(self.ffn_norm(x)), approximate="tanh")
        return x + self.ffn_out(inside)


def products(x, weight):
    """Products of features [.., F] with each row of a weight [rows, F]: [.., rows], padded by -inf.

    A GPU multiplies 16-bit rows of an odd length slowly, and torch.compile would copy all logits to
    pad them. Adding -inf as a bias takes no pass of its own.
    """
    rows = len(weight)
    more = -rows % LANES if torch.is_autocast_enabled() else 0  # on a GPU; a CPU gains nothing
    if not more:
        return functional.linear(x, weight)
    bias = torch.zeros(rows + more, device=x.device)
    bias[rows:] = -math.inf
    return functional.linear(x, functional.pad(weight, (0, 0, 0, more)), bias)


def _norm(shape):
    return nn.LayerNorm(shape["hidden"], eps=gpt2.NORM_EPSILON)
