"""The Transformer for PyTorch; trainers/recipes/encoder_decoder.py says what it is."""

import torch
from torch import nn
from torch.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.attention import heads_of, joined
from trainers.inputs.pairs import pair_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import encoder_decoder


class EncoderDecoder(nn.Module):
    """Takes a batch as the recipe makes it, returns the mean loss of the real tokens."""

    def __init__(self, flags):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(encoder_decoder, flags)
        self.word = nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.encoder = nn.ModuleList([Encoder(shape, dropout) for _ in range(shape["layers"])])
        self.encoder_norm = _norm(shape)
        self.decoder = nn.ModuleList([Decoder(shape, dropout) for _ in range(shape["layers"])])
        self.decoder_norm = _norm(shape)
        self.dropout = nn.Dropout(dropout)
        positions = torch.from_numpy(encoder_decoder.positions(shape))
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
            label_smoothing=encoder_decoder.LABEL_SMOOTHING,
        )
        return (losses * weights.flatten()).sum() / weights.sum()

    def embedded(self, tokens):
        x = self.word(tokens) * self.word.embedding_dim**0.5
        return self.dropout(x + self.positions[: tokens.shape[1]])


class Encoder(nn.Module):
    """Attention, then two linear layers, each behind a layer norm and beside a shortcut."""

    def __init__(self, shape, dropout):
        super().__init__()
        self.attention = SelfAttention(shape, dropout)
        self.ffn = FeedForward(shape, dropout)

    def forward(self, x, mask):
        return self.ffn(self.attention(x, mask))


class Decoder(nn.Module):
    """As an encoder's, and attention to what the encoder has made in between."""

    def __init__(self, shape, dropout):
        super().__init__()
        self.attention = SelfAttention(shape, dropout)
        self.cross = CrossAttention(shape, dropout)
        self.ffn = FeedForward(shape, dropout)

    def forward(self, x, memory, mask):
        return self.ffn(self.cross(self.attention(x, None), memory, mask))


class Attention(nn.Module):
    """What both kinds of attention do with queries, keys and values, [N, heads, L, H / heads]."""

    def __init__(self, shape, dropout):
        super().__init__()
        self.heads = shape["heads"]
        self.norm = _norm(shape)
        self.dropout = nn.Dropout(dropout)

    def attend(self, query, key, value, mask):
        """What each query attends to: where the mask lets it; None: nothing behind it."""
        dropped = self.dropout.p if self.training else 0.0
        attended = functional.scaled_dot_product_attention(
            query, key, value, mask, dropped, is_causal=mask is None
        )
        return self.dropout(self.out(joined(attended)))


class SelfAttention(Attention):
    def __init__(self, shape, dropout):
        super().__init__(shape, dropout)
        self.qkv = nn.Linear(shape["hidden"], 3 * shape["hidden"])
        self.out = nn.Linear(shape["hidden"], shape["hidden"])

    def forward(self, x, mask):
        return x + self.attend(*heads_of(self.qkv(self.norm(x)), 3, self.heads), mask)


class CrossAttention(Attention):
    def __init__(self, shape, dropout):
        super().__init__(shape, dropout)
        self.query = nn.Linear(shape["hidden"], shape["hidden"])
        self.kv = nn.Linear(shape["hidden"], 2 * shape["hidden"])
        self.out = nn.Linear(shape["hidden"], shape["hidden"])

    def forward(self, x, memory, mask):
        (query,) = heads_of(self.query(self.norm(x)), 1, self.heads)
        return x + self.attend(query, *heads_of(self.kv(memory), 2, self.heads), mask)


class FeedForward(nn.Module):
    def __init__(self, shape, dropout):
        super().__init__()
        self.norm = _norm(shape)
        self.inner = nn.Linear(shape["hidden"], shape["intermediate"])
        self.out = nn.Linear(shape["intermediate"], shape["hidden"])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        inside = self.dropout(functional.relu(self.inner(self.norm(x))))
        return x + self.dropout(self.out(inside))


def _norm(shape):
    return nn.LayerNorm(shape["hidden"], eps=encoder_decoder.NORM_EPSILON)
