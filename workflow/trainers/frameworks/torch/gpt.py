"""GPT-2 for PyTorch; trainers/recipes/gpt2.py says what it is."""

import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from trainers.frameworks.torch.attention import Attended, FeedForward
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import gpt2

LANES = 64  # matrix units are fastest if the length of rows is a multiple of this


class Gpt(nn.Module):
    def __init__(self, flags):
        super().__init__()
        shape, hidden, epsilon = flags.shape, flags.shape["hidden"], gpt2.NORM_EPSILON
        ffn = gpt2.WIDER * hidden, epsilon, partial(functional.gelu, approximate="tanh")
        self.token = nn.Embedding(shape["vocabulary"], hidden)
        self.position = nn.Embedding(shape["context"], hidden)
        self.layers = nn.ModuleList(
            nn.Sequential(Attended(shape, epsilon), FeedForward(shape, *ffn))
            for _ in range(shape["layers"])
        )
        self.norm = nn.LayerNorm(hidden, eps=epsilon)

    def forward(self, tokens, following):
        x = self.token(tokens) + self.position.weight
        for layer in self.layers:
            x = layer(x)
        logits = products(self.norm(x), self.token.weight)
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def products(x, weight):
    """Products of features [.., F] with each row of a weight [rows, F]: [.., rows], padded by -inf.

    A GPU multiplies 16-bit rows of an odd length slowly; -inf as a bias takes no pass of its own.
    """
    rows = len(weight)
    more = -rows % LANES if torch.is_autocast_enabled() else 0  # on a GPU; a CPU gains nothing
    if not more:
        return functional.linear(x, weight)
    bias = torch.zeros(rows + more, device=x.device)
    bias[rows:] = -math.inf
    return functional.linear(x, functional.pad(weight, (0, 0, 0, more)), bias)
