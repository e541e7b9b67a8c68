"""Tokens for JAX, from parts of ids."""

from trainers.inputs.tokens import Tokens


def token_batches(flags, rank, world_size, device):
    """Endless batches of tokens and those that follow each, as numpy's arrays."""
    return iter(Tokens(flags.data, flags.shape, flags.batch_size, rank, world_size))
