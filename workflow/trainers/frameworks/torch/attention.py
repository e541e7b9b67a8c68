"""What PyTorch's Transformers are made of: attention of several heads, and linear layers."""

from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """What each token attends to: features [N, S, H] -> [N, S, H].

    Each linear layer gives so many `parts` of queries, keys and values.
    """

    def __init__(self, shape, dropout=0.0, parts=(3,)):
        super().__init__()
        hidden = shape["hidden"]
        self.heads, self.dropout, self.parts = shape["heads"], dropout, parts
        self.fused = nn.ModuleList(nn.Linear(hidden, part * hidden) for part in parts)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, *sources, mask=None):
        """Of what each linear layer takes, [N, S, H].

        The mask is added to scores, or says where they count; None: later tokens do not count.
        """
        given = zip(self.fused, sources, self.parts)
        each = [one for layer, x, parts in given for one in heads_of(layer(x), parts, self.heads)]
        attended = functional.scaled_dot_product_attention(
            *each, mask, self.dropped(), is_causal=mask is None
        )
        return self.out(joined(attended))

    def dropped(self):
        """The share of attention's weights that is dropped out now."""
        return self.dropout if self.training else 0.0


def heads_of(x, parts, heads):
    """What a fused linear layer gave, [N, S, parts H], as `parts` of [N, heads, S, H / heads]."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind()


def joined(attended):
    """Heads' features [N, heads, S, H / heads] as [N, S, H]."""
    return attended.transpose(1, 2).flatten(2)


class Attended(nn.Module):
    """Attention after a layer norm and beside a shortcut; it takes what Attention does."""

    def __init__(self, shape, epsilon, dropout=0.0, parts=(3,)):
        super().__init__()
        self.norm = nn.LayerNorm(shape["hidden"], eps=epsilon)
        self.attention = Attention(shape, dropout, parts)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, *memory, mask=None):
        return x + self.dropout(self.attention(self.norm(x), *memory, mask=mask))


class FeedForward(nn.Module):
    """Two linear layers, with `between` in between, after a layer norm and beside a shortcut."""

    def __init__(self, shape, wide, epsilon, between, dropout=0.0):
        super().__init__()
        hidden = shape["hidden"]
        self.norm = nn.LayerNorm(hidden, eps=epsilon)
        self.inner, self.between = nn.Linear(hidden, wide), between
        self.out = nn.Linear(wide, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        inside = self.dropout(self.between(self.inner(self.norm(x))))
        return x + self.dropout(self.out(inside))
