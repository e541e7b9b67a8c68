"""BERT for PaddlePaddle; trainers/recipes/bert.py says what it is."""

import paddle
from paddle import nn
from paddle.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.paddle.layers import attended, heads_of
from trainers.inputs.sentences import sentence_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import bert


class Bert(nn.Layer):
    def __init__(self, flags, layout):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(bert, flags)
        hidden = shape["hidden"]
        self.embeddings = Embeddings(shape, dropout)
        self.layers = nn.LayerList([Layer(shape, dropout) for _ in range(shape["layers"])])
        self.pooler = nn.Linear(hidden, hidden)
        self.mlm = MaskedTokens(shape)
        self.nsp = nn.Linear(hidden, bert.SEGMENTS)

    # A static graph takes no *batch.
    def forward(  # noqa: PLR0917
        self, tokens, real, segments, positions, masked, weights, following
    ):
        x = self.embeddings(tokens, segments)
        # [N, 1, 1, S]: the same for all heads and all queries.
        mask = ((1 - real).astype("float32") * bert.MASKED).unsqueeze([1, 2])
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.mlm(x, positions, self.embeddings.word.weight)
        losses = functional.cross_entropy(logits, masked.flatten(), reduction="none")
        weights = weights.flatten()
        mlm = (losses * weights).sum() / (weights.sum() + bert.PREDICTIONS_EPSILON)
        pooled = paddle.tanh(self.pooler(x[:, 0]))
        return mlm + functional.cross_entropy(self.nsp(pooled), following)


class Embeddings(nn.Layer):
    """Takes tokens and their segments [N, S], returns features [N, S, H]."""

    def __init__(self, shape, dropout):
        super().__init__()
        hidden = shape["hidden"]
        self.word = nn.Embedding(shape["vocabulary"], hidden)
        self.position = nn.Embedding(shape["positions"], hidden)
        self.segment = nn.Embedding(bert.SEGMENTS, hidden)
        self.norm = _norm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens, segments):
        x = self.word(tokens) + self.position.weight[: tokens.shape[1]] + self.segment(segments)
        return self.dropout(self.norm(x))


class Layer(nn.Layer):
    def __init__(self, shape, dropout):
        super().__init__()
        hidden = shape["hidden"]
        self.heads = shape["heads"]
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.attention_norm = _norm(hidden)
        self.ffn_in = nn.Linear(hidden, shape["intermediate"])
        self.ffn_out = nn.Linear(shape["intermediate"], hidden)
        self.ffn_norm = _norm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        query, key, value = heads_of(self.qkv(x), 3, self.heads)
        found = attended(query, key, value, mask, self.dropout)
        x = self.attention_norm(x + self.dropout(self.out(found)))
        inside = functional.gelu(self.ffn_in(x))
        return self.ffn_norm(x + self.dropout(self.ffn_out(inside)))


class MaskedTokens(nn.Layer):
    """Takes features [N, S, H] and places [N, P] in them, returns logits of the tokens there."""

    def __init__(self, shape):
        super().__init__()
        self.transform = nn.Linear(shape["hidden"], shape["hidden"])
        self.norm = _norm(shape["hidden"])
        # In a list, because a layer's own parameters come before those of its parts.
        bias = self.create_parameter([shape["vocabulary"]], is_bias=True)
        self.bias = nn.ParameterList([bias])

    def forward(self, x, positions, words):
        count, length, _ = x.shape
        starts = paddle.arange(0, count * length, length, dtype=positions.dtype)
        x = paddle.gather(x.flatten(0, 1), (positions + starts.unsqueeze(1)).flatten())
        x = self.norm(functional.gelu(self.transform(x)))
        return paddle.matmul(x, words, transpose_y=True) + self.bias[0]


def _norm(features):
    return nn.LayerNorm(features, epsilon=bert.NORM_EPSILON)
