"""Sentences for PyTorch, from records of text."""

import torch

from trainers.inputs.sentences import Sentences


def sentence_batches(flags, rank, world_size, device):
    """Endless batches of pairs of sentences, as tensors in host memory.

    Page-locked, so that a GPU can copy them while it trains.
    """
    sentences = Sentences(flags.data, flags.shape, flags.batch_size, rank, world_size)
    for batch in sentences:
        tensors = [torch.from_numpy(array) for array in batch]
        yield [one.pin_memory() for one in tensors] if device.type == "cuda" else tensors
