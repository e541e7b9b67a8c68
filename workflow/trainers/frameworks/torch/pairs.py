"""Pairs of sentences for PyTorch, from parts of ids."""

from trainers.frameworks.torch.inputs import in_host_memory
from trainers.inputs.pairs import Pairs


def pair_batches(flags, rank, world_size, device):
    """Endless batches of sources and targets, as tensors in host memory."""
    pairs = Pairs(flags.data, flags.shape, flags.batch_size, rank, world_size)
    return in_host_memory(pairs, device)
