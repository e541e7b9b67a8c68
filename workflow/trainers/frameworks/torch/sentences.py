"""Sentences for PyTorch, from records of text."""

from trainers.frameworks.torch.inputs import in_host_memory
from trainers.inputs.sentences import Sentences


def sentence_batches(flags, rank, world_size, device):
    """Endless batches of pairs of sentences, as tensors in host memory."""
    sentences = Sentences(flags.data, flags.shape, flags.batch_size, rank, world_size)
    return in_host_memory(sentences, device)
