"""Tokens for PyTorch, from parts of ids."""

import torch

from trainers.inputs.tokens import Tokens


def token_batches(flags, rank, world_size, device):
    """Endless batches of tokens and those that follow each, as tensors in host memory.

    Page-locked, so that a GPU can copy them while it trains.
    """
    for batch in Tokens(flags.data, flags.shape, flags.batch_size, rank, world_size):
        tensors = [torch.from_numpy(array) for array in batch]
        yield [one.pin_memory() for one in tensors] if device.type == "cuda" else tensors
