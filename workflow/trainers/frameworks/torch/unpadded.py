"""BERT for PyTorch without padding, which changes no loss: a batch's real tokens lie in one row."""

import torch
from torch.nn import functional

from trainers.contract.steplog import Refused
from trainers.frameworks.torch.attention import Attention
from trainers.frameworks.torch.bert import Bert


def bert_of(flags):
    return UnpaddedBert(flags) if flags.unpadded else Bert(flags)


class UnpaddedBert(Bert):
    """Takes a batch as `prepared` makes it, returns the mean loss of both predictions."""

    def __init__(self, flags):
        if not hasattr(torch.nested, "nested_tensor_from_jagged"):
            raise Refused(
                f"torch {torch.__version__} knows no rows of sequences; allowed: 2.5 or later"
            )
        super().__init__(flags, UnpaddedAttention)

    @staticmethod
    def prepared(batch):
        """A batch without its padding, made on the host: the real tokens, their positions and
        segments, [tokens]; where each sequence begins among them, and the end, [N + 1]; places and
        labels as Bert.loss takes them.
        """
        tokens, real, segments, positions, masked, weights, following = batch
        kept = real.bool()
        bounds = functional.pad(real.sum(1).cumsum(0), (1, 0))
        numbers = torch.arange(tokens.shape[1]).expand_as(tokens)
        places = (positions + bounds[:-1, None]).flatten()
        labels = masked.flatten(), weights.flatten(), following
        return [tokens[kept], numbers[kept], segments[kept], bounds, places, *labels]

    def forward(self, *batch):
        tokens, numbers, segments, bounds, places, *labels = batch
        x = self.embedded(tokens, segments, self.position(numbers))
        for layer in self.layers:
            x = layer(x, bounds)
        return self.loss(x, bounds[:-1], places, labels)


class UnpaddedAttention(Attention):
    """The same on the tokens of all sequences in one row [tokens, H]."""

    def __init__(self, shape, dropout):
        super().__init__(shape, dropout)
        self.longest = shape["sequence_length"]

    def forward(self, x, mask):
        """Each token attends to its own sequence: the mask lists their starts, and the end."""

        def sequences(x):
            # [tokens, heads, H / heads] -> N of [heads, S, H / heads], each S its own
            lengths = {"min_seqlen": 1, "max_seqlen": self.longest}  # else they are asked for
            of_each = torch.nested.nested_tensor_from_jagged(x.contiguous(), mask, **lengths)
            return of_each.transpose(1, 2)

        (fused,) = self.fused
        row = map(sequences, fused(x).unflatten(-1, (3, self.heads, -1)).unbind(1))
        attended = functional.scaled_dot_product_attention(*row, dropout_p=self.dropped())
        return self.out(attended.transpose(1, 2).values().flatten(1))
