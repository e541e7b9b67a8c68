"""Features of several heads, for PyTorch's models of attention."""


def heads_of(x, parts, heads):
    """What a fused linear layer gave, [N, S, parts H], as `parts` of [N, heads, S, H / heads]."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind()


def joined(attended):
    """Heads' features [N, heads, S, H / heads] as [N, S, H]."""
    return attended.transpose(1, 2).flatten(2)
