"""Sentences for JAX, from records of text."""

from trainers.inputs.sentences import Sentences


def sentence_batches(flags, rank, world_size, device):
    """Endless batches of pairs of sentences, as numpy's arrays."""
    return iter(Sentences(flags.data, flags.shape, flags.batch_size, rank, world_size))
