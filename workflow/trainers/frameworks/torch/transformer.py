"""The Transformer for PyTorch; trainers/recipes/transformer.py says what it is."""

import torch
from torch import nn
from torch.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.attention import Attended, FeedForward
from trainers.inputs.pairs import pair_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import transformer


class Transformer(nn.Module):
    def __init__(self, flags):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(transformer, flags)
        self.word = nn.Embedding(shape["vocabulary"], shape["hidden"])
        layers = range(shape["layers"])
        self.encoder = nn.ModuleList([Layer(shape, dropout, decodes=False) for _ in layers])
        self.encoder_norm = nn.LayerNorm(shape["hidden"], eps=transformer.NORM_EPSILON)
        self.decoder = nn.ModuleList([Layer(shape, dropout, decodes=True) for _ in layers])
        self.decoder_norm = nn.LayerNorm(shape["hidden"], eps=transformer.NORM_EPSILON)
        self.dropout = nn.Dropout(dropout)
        positions = torch.from_numpy(transformer.positions(shape))
        self.register_buffer("positions", positions, persistent=False)

    def forward(self, source, real, target, following, weights):
        # [N, 1, 1, L]: the same for all heads and all queries.
        mask = real.bool()[:, None, None, :]
        x = self.embedded(source)
        for layer in self.encoder:
            x = layer(x, mask)
        memory, x = self.encoder_norm(x), self.embedded(target)
        for layer in self.decoder:
            x = layer(x, mask, memory)
        logits = functional.linear(self.decoder_norm(x), self.word.weight)
        how = {"reduction": "none", "label_smoothing": transformer.LABEL_SMOOTHING}
        losses = functional.cross_entropy(logits.flatten(0, 1), following.flatten(), **how)
        return (losses * weights.flatten()).sum() / weights.sum()

    def embedded(self, tokens):
        x = self.word(tokens) * self.word.embedding_dim**0.5
        return self.dropout(x + self.positions[: tokens.shape[1]])


class Layer(nn.Module):
    """Attention, in a decoder also to the encoder's output, then two linear layers."""

    def __init__(self, shape, dropout, decodes):
        super().__init__()
        wide, epsilon = shape["intermediate"], transformer.NORM_EPSILON
        self.attention = Attended(shape, epsilon, dropout)
        self.cross = Attended(shape, epsilon, dropout, parts=(1, 2)) if decodes else None
        self.ffn = FeedForward(shape, wide, epsilon, functional.relu, dropout)

    def forward(self, x, mask, memory=None):
        if self.cross is None:
            return self.ffn(self.attention(x, mask=mask))
        return self.ffn(self.cross(self.attention(x), memory, mask=mask))
