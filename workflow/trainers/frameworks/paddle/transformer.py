"""The Transformer for PaddlePaddle; trainers/recipes/transformer.py says what it is."""

import paddle
from paddle import nn
from paddle.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.paddle.layers import Attention
from trainers.inputs.pairs import pair_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import transformer


class Transformer(nn.Layer):
    def __init__(self, flags, layout):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(transformer, flags)
        layers = range(shape["layers"])
        self.scale = shape["hidden"] ** 0.5
        self.word = nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.encoder = nn.LayerList([Layer(shape, dropout, decodes=False) for _ in layers])
        self.encoder_norm = _norm(shape)
        self.decoder = nn.LayerList([Layer(shape, dropout, decodes=True) for _ in layers])
        self.decoder_norm = _norm(shape)
        self.dropout = nn.Dropout(dropout)
        positions = paddle.to_tensor(transformer.positions(shape))
        self.register_buffer("positions", positions, persistable=False)

    def forward(self, source, real, target, following, weights):
        length = source.shape[1]
        # Added to scores: [N, 1, 1, L], the same for all heads and all queries; [L, L].
        mask = ((1 - real).astype("float32") * transformer.MASKED).unsqueeze([1, 2])
        later = paddle.triu(paddle.full([length, length], transformer.MASKED), 1)
        x = self.embedded(source)
        for layer in self.encoder:
            x = layer(x, mask)
        memory, x = self.encoder_norm(x), self.embedded(target)
        for layer in self.decoder:
            x = layer(x, later, memory, mask)
        logits = paddle.matmul(self.decoder_norm(x), self.word.weight, transpose_y=True)
        losses = smoothed(logits.flatten(0, 1), following.flatten())
        return (losses * weights.flatten()).sum() / weights.sum()

    def embedded(self, tokens):
        return self.dropout(self.word(tokens) * self.scale + self.positions[: tokens.shape[1]])


class Layer(nn.Layer):
    """Attention, in a decoder also to the encoder's output, then two linear layers."""

    def __init__(self, shape, dropout, decodes):
        super().__init__()
        self.attention = Attended(shape, dropout)
        self.cross = Attended(shape, dropout, parts=(1, 2)) if decodes else None
        self.ffn = FeedForward(shape, dropout)

    def forward(self, x, own, memory=None, mask=None):
        x = self.attention(x, own)
        return self.ffn(x if self.cross is None else self.cross(x, mask, memory))


class Attended(nn.Layer):
    """Attention after a layer norm and beside a shortcut."""

    def __init__(self, shape, dropout, parts=(3,)):
        super().__init__()
        self.norm, self.attention = _norm(shape), Attention(shape, dropout, parts)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask, memory=None):
        return x + self.dropout(self.attention(self.norm(x), mask, memory))


class FeedForward(nn.Layer):
    def __init__(self, shape, dropout):
        super().__init__()
        self.norm = _norm(shape)
        self.inner = nn.Linear(shape["hidden"], shape["intermediate"])
        self.out = nn.Linear(shape["intermediate"], shape["hidden"])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        inside = self.dropout(functional.relu(self.inner(self.norm(x))))
        return x + self.dropout(self.out(inside))


def smoothed(logits, labels):
    """The cross-entropies of rows of logits with smoothed labels, of which none is made dense."""
    logits = logits.astype("float32")
    share = transformer.LABEL_SMOOTHING
    of_labels = functional.cross_entropy(logits, labels, reduction="none")
    of_all = paddle.logsumexp(logits, -1) - logits.mean(-1)
    return (1 - share) * of_labels.flatten() + share * of_all


def _norm(shape):
    return nn.LayerNorm(shape["hidden"], epsilon=transformer.NORM_EPSILON)
