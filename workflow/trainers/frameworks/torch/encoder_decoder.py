"""The Transformer for PyTorch; trainers/recipes/transformer.py says what it is."""

import torch
from torch import nn
from torch.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.attention import Attended, FeedForward
from trainers.inputs.pairs import pair_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import transformer


class EncoderDecoder(nn.Module):
    def __init__(self, flags):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(transformer, flags)
        self.word = nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.encoder = nn.ModuleList([Encoder(shape, dropout) for _ in range(shape["layers"])])
        self.encoder_norm = nn.LayerNorm(shape["hidden"], eps=transformer.NORM_EPSILON)
        self.decoder = nn.ModuleList([Decoder(shape, dropout) for _ in range(shape["layers"])])
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
            x = layer(x, memory, mask)
        logits = functional.linear(self.decoder_norm(x), self.word.weight)
        losses = functional.cross_entropy(
            logits.flatten(0, 1),
            following.flatten(),
            reduction="none",
            label_smoothing=transformer.LABEL_SMOOTHING,
        )
        return (losses * weights.flatten()).sum() / weights.sum()

    def embedded(self, tokens):
        x = self.word(tokens) * self.word.embedding_dim**0.5
        return self.dropout(x + self.positions[: tokens.shape[1]])


class Encoder(nn.Module):
    def __init__(self, shape, dropout):
        super().__init__()
        wide, epsilon = shape["intermediate"], transformer.NORM_EPSILON
        self.attention = Attended(shape, epsilon, dropout)
        self.ffn = FeedForward(shape, wide, epsilon, functional.relu, dropout)

    def forward(self, x, mask):
        return self.ffn(self.attention(x, mask=mask))


class Decoder(nn.Module):
    """As an encoder's, and attention to what the encoder has made in between."""

    def __init__(self, shape, dropout):
        super().__init__()
        wide, epsilon = shape["intermediate"], transformer.NORM_EPSILON
        self.attention = Attended(shape, epsilon, dropout)
        self.cross = Attended(shape, epsilon, dropout, parts=(1, 2))
        self.ffn = FeedForward(shape, wide, epsilon, functional.relu, dropout)

    def forward(self, x, memory, mask):
        return self.ffn(self.cross(self.attention(x), memory, mask=mask))
