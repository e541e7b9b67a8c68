"""Tokens for PyTorch, from parts of ids."""

from trainers.frameworks.torch.inputs import in_host_memory
from trainers.inputs.tokens import Tokens


def token_batches(flags, rank, world_size, device):
    """Endless batches of tokens and those that follow each, as tensors in host memory."""
    tokens = Tokens(flags.data, flags.shape, flags.batch_size, rank, world_size)
    return in_host_memory(tokens, device)
