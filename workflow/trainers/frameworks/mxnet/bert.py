"""BERT in MXNet's Gluon; trainers/recipes/bert.py says what it is.

MXNet's kernels for attention want features with the sequence first, [S, N, H], and interleaved:
head by head, not all queries, all keys, all values as in the recipe.
"""

from mxnet.gluon import nn

from trainers.contract.recipe import dropout_of
from trainers.inputs.sentences import sentence_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import bert


class Bert(nn.HybridBlock):
    def __init__(self, flags, device):
        super().__init__()
        shape, dropout = flags.shape, dropout_of(bert, flags)
        hidden = shape["hidden"]
        self._heads, self._length = shape["heads"], shape["sequence_length"]
        rows = shape["vocabulary"], shape["positions"], bert.SEGMENTS
        for name, count in zip(("word", "position", "segment"), rows):
            setattr(self, name, self.params.get(name, shape=(count, hidden)))
        self.norm, self.dropout = _norm(hidden), nn.Dropout(dropout)
        self.layers = []
        for _ in range(shape["layers"]):
            self.layers.append(Layer(shape, dropout, device))
            self.register_child(self.layers[-1])
        self.pooler = _linear(hidden, hidden)
        self.transform, self.transform_norm = _linear(hidden, hidden), _norm(hidden)
        self.decode = Decoder(shape["vocabulary"], self.word)
        self.nsp = _linear(hidden, bert.SEGMENTS)

    def arranged(self, name, start):
        """The recipe's array of a weight as this model has it: see above."""
        if ".qkv." not in name:
            return start
        # [3, heads, H / heads, ...] -> [heads, 3, H / heads, ...]
        parts = start.reshape((3, self._heads, -1, *start.shape[1:]))
        return parts.swapaxes(0, 1).reshape(start.shape)

    def hybrid_forward(self, F, *batch, word, position, segment):
        tokens, real, segments, positions, masked, weights, following = batch
        x = F.Embedding(F.transpose(tokens), word, *self.word.shape)
        x = x + F.Embedding(F.transpose(segments), segment, *self.segment.shape)
        places = F.slice_axis(position, axis=0, begin=0, end=self._length)
        x = self.dropout(self.norm(F.broadcast_add(x, F.expand_dims(places, 1))))
        # [N] -> [N * heads, S]: how many keys a query sees.
        lengths = F.reshape(F.cast(F.sum(real, axis=1), "int32"), shape=(-1, 1, 1))
        lengths = F.broadcast_axes(lengths, axis=(1, 2), size=(self._heads, self._length))
        lengths = F.reshape(lengths, shape=(-3, 0))
        for layer in self.layers:
            x = layer(x, lengths)
        samples = F.expand_dims(F.contrib.arange_like(positions, axis=0), 1)
        samples = F.broadcast_like(samples, positions)
        places = F.stack(F.reshape(positions, shape=(-1,)), F.reshape(samples, shape=(-1,)))
        inside = F.LeakyReLU(self.transform(F.gather_nd(x, places)), act_type="gelu")
        log_chances = F.log_softmax(self.decode(self.transform_norm(inside)))
        losses = -F.pick(log_chances, F.reshape(masked, shape=(-1,)))
        weights = F.reshape(weights, shape=(-1,))
        mlm = F.sum(losses * weights) / (F.sum(weights) + bert.PREDICTIONS_EPSILON)
        first = F.reshape(F.slice_axis(x, axis=0, begin=0, end=1), shape=(-3, 0))
        log_chances = F.log_softmax(self.nsp(F.tanh(self.pooler(first))))
        return mlm - F.mean(F.pick(log_chances, following))


class Layer(nn.HybridBlock):
    def __init__(self, shape, dropout, device):
        super().__init__()
        hidden = shape["hidden"]
        self._heads = shape["heads"]
        self._on_gpu = device.device_type == "gpu"
        self.qkv = _linear(hidden, 3 * hidden)
        self.out = _linear(hidden, hidden)
        self.attention_norm = _norm(hidden)
        self.ffn_in = _linear(hidden, shape["intermediate"])
        self.ffn_out = _linear(shape["intermediate"], hidden)
        self.ffn_norm = _norm(hidden)
        self.dropout = nn.Dropout(dropout)

    def hybrid_forward(self, F, x, lengths):
        x = self.attention_norm(x + self.dropout(self.out(self.attend(F, self.qkv(x), lengths))))
        inside = F.LeakyReLU(self.ffn_in(x), act_type="gelu")  # the exact one
        return self.ffn_norm(x + self.dropout(self.ffn_out(inside)))

    def attend(self, F, qkv, lengths):
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self._heads)
        attention = F.softmax(scores, lengths, use_length=True)
        if self._on_gpu:
            # Softmax is float32, and so would be the product if both were not made float16.
            attention, qkv = F.amp_multicast(attention, qkv, num_outputs=2, cast_narrow=True)
        attention = self.dropout(attention)
        return F.contrib.interleaved_matmul_selfatt_valatt(qkv, attention, heads=self._heads)


class Decoder(nn.HybridBlock):
    """A linear layer whose weight is the word embedding, and whose bias is its own.

    A block of its own, because a block's parameters come before those of its parts.
    """

    def __init__(self, vocabulary, words):
        super().__init__()
        self._vocabulary = vocabulary
        self.words = words
        self.bias = self.params.get("bias", shape=(vocabulary,))

    def hybrid_forward(self, F, x, words, bias):
        return F.FullyConnected(x, words, bias, num_hidden=self._vocabulary, flatten=False)


def _linear(inputs, outputs):
    return nn.Dense(outputs, in_units=inputs, flatten=False)


def _norm(features):
    return nn.LayerNorm(epsilon=bert.NORM_EPSILON, in_channels=features)
