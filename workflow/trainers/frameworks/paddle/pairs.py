"""Pairs of sentences for PaddlePaddle, from parts of ids."""

from trainers.inputs.pairs import Pairs


def pair_batches(flags, rank, world_size, gpu):
    """Endless batches of sources and targets, as numpy's arrays."""
    return iter(Pairs(flags.data, flags.shape, flags.batch_size, rank, world_size))
