"""BERT for PyTorch; trainers/recipes/bert.py says what it is."""

import torch
from torch import nn
from torch.nn import functional

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.attention import Attention
from trainers.inputs.sentences import sentence_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import bert


class Bert(nn.Module):
    def __init__(self, flags, attention=Attention):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(bert, flags)
        hidden = shape["hidden"]
        self.word = nn.Embedding(shape["vocabulary"], hidden)
        self.position = nn.Embedding(shape["positions"], hidden)
        self.segment = nn.Embedding(bert.SEGMENTS, hidden)
        self.norm, self.dropout = _norm(hidden), nn.Dropout(dropout)
        layers = (Layer(shape, dropout, attention) for _ in range(shape["layers"]))
        self.layers = nn.ModuleList(layers)
        self.pooler = nn.Linear(hidden, hidden)
        self.transform, self.transform_norm = nn.Linear(hidden, hidden), _norm(hidden)
        # A list keeps the bias last: a module's own parameters come before its parts'.
        self.bias = nn.ParameterList([torch.zeros(shape["vocabulary"])])
        self.nsp = nn.Linear(hidden, bert.SEGMENTS)

    def forward(self, *batch):
        tokens, real, segments, positions, masked, weights, following = batch
        count, length = tokens.shape
        x = self.embedded(tokens, segments, self.position.weight[:length])
        # [N, 1, 1, S]: the same for all heads and all queries.
        mask = ((1 - real) * bert.MASKED)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        starts = torch.arange(0, count * length, length, device=x.device)
        places = (positions + starts[:, None]).flatten()
        labels = masked.flatten(), weights.flatten(), following
        return self.loss(x.flatten(0, 1), starts, places, labels)

    def embedded(self, tokens, segments, positions):
        """Tokens, their segments and their positions' features as features [.., H]."""
        return self.dropout(self.norm(self.word(tokens) + positions + self.segment(segments)))

    def loss(self, x, starts, places, labels):
        """The mean loss of both predictions, of features of tokens, [tokens, H].

        Of sequences there are `starts` among them, [N], and whether the second sentence follows; of
        masked tokens their places, what they were, and their weights, 0.0 for padding, [N P] each.
        """
        masked, weights, following = labels
        x_masked = self.transform_norm(functional.gelu(self.transform(x[places])))
        logits = functional.linear(x_masked, self.word.weight, self.bias[0])
        losses = functional.cross_entropy(logits, masked, reduction="none")
        mlm = (losses * weights).sum() / (weights.sum() + bert.PREDICTIONS_EPSILON)
        pooled = torch.tanh(self.pooler(x[starts]))
        return mlm + functional.cross_entropy(self.nsp(pooled), following)


class Layer(nn.Module):
    def __init__(self, shape, dropout, attention):
        super().__init__()
        hidden = shape["hidden"]
        self.attention = attention(shape, dropout)
        self.attention_norm = _norm(hidden)
        self.ffn_in = nn.Linear(hidden, shape["intermediate"])
        self.ffn_out = nn.Linear(shape["intermediate"], hidden)
        self.ffn_norm = _norm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, where):
        x = self.attention_norm(x + self.dropout(self.attention(x, mask=where)))
        inside = functional.gelu(self.ffn_in(x))
        return self.ffn_norm(x + self.dropout(self.ffn_out(inside)))


def _norm(features):
    return nn.LayerNorm(features, eps=bert.NORM_EPSILON)
