"""BERT for PaddlePaddle; trainers/recipes/bert.py says what it is."""

import paddle
from paddle import nn
from paddle.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.paddle.layers import Attention
from trainers.inputs.sentences import sentence_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import bert


class Bert(nn.Layer):
    def __init__(self, flags, layout):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(bert, flags)
        hidden = shape["hidden"]
        self.word = nn.Embedding(shape["vocabulary"], hidden)
        self.position = nn.Embedding(shape["positions"], hidden)
        self.segment = nn.Embedding(bert.SEGMENTS, hidden)
        self.norm, self.dropout = _norm(hidden), nn.Dropout(dropout)
        self.layers = nn.LayerList([Layer(shape, dropout) for _ in range(shape["layers"])])
        self.pooler = nn.Linear(hidden, hidden)
        self.transform, self.transform_norm = nn.Linear(hidden, hidden), _norm(hidden)
        # A list keeps the bias last: a layer's own parameters come before its parts'.
        bias = self.create_parameter([shape["vocabulary"]], is_bias=True)
        self.bias = nn.ParameterList([bias])
        self.nsp = nn.Linear(hidden, bert.SEGMENTS)

    # A static graph takes no *batch.
    def forward(  # noqa: PLR0917
        self, tokens, real, segments, positions, masked, weights, following
    ):
        x = self.word(tokens) + self.position.weight[: tokens.shape[1]] + self.segment(segments)
        x = self.dropout(self.norm(x))
        # [N, 1, 1, S]: the same for all heads and all queries.
        mask = ((1 - real).astype("float32") * bert.MASKED).unsqueeze([1, 2])
        for layer in self.layers:
            x = layer(x, mask)
        count, length, _ = x.shape
        starts = paddle.arange(0, count * length, length, dtype=positions.dtype)
        x_masked = paddle.gather(x.flatten(0, 1), (positions + starts.unsqueeze(1)).flatten())
        x_masked = self.transform_norm(functional.gelu(self.transform(x_masked)))
        logits = paddle.matmul(x_masked, self.word.weight, transpose_y=True) + self.bias[0]
        losses = functional.cross_entropy(logits, masked.flatten(), reduction="none")
        weights = weights.flatten()
        mlm = (losses * weights).sum() / (weights.sum() + bert.PREDICTIONS_EPSILON)
        pooled = paddle.tanh(self.pooler(x[:, 0]))
        return mlm + functional.cross_entropy(self.nsp(pooled), following)


class Layer(nn.Layer):
    def __init__(self, shape, dropout):
        super().__init__()
        hidden = shape["hidden"]
        self.attention = Attention(shape, dropout)
        self.attention_norm = _norm(hidden)
        self.ffn_in = nn.Linear(hidden, shape["intermediate"])
        self.ffn_out = nn.Linear(shape["intermediate"], hidden)
        self.ffn_norm = _norm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        inside = functional.gelu(self.ffn_in(x))
        return self.ffn_norm(x + self.dropout(self.ffn_out(inside)))


def _norm(features):
    return nn.LayerNorm(features, epsilon=bert.NORM_EPSILON)
