"""Batches for PyTorch, on the device that trains."""

import itertools

import torch

from trainers.contract.weights import synthetic_batch


def synthetic_batches(recipe, flags, rank, device):
    """The rank's synthetic batch, again and again: a list of tensors on the device."""
    batch = [torch.from_numpy(array) for array in synthetic_batch(recipe, flags, rank)]
    return itertools.repeat([tensor.to(device) for tensor in batch])


def on_device(batches, device):
    """Batches on the device; a GPU copies the next one while it trains on the current one."""
    if device.type == "cpu":
        yield from batches
    copier, trainer = torch.cuda.Stream(device), torch.cuda.current_stream(device)

    def copy(batch):
        with torch.cuda.stream(copier):
            return [tensor.to(device, non_blocking=True) for tensor in batch]

    ahead = copy(next(batches))
    while True:
        trainer.wait_stream(copier)
        for tensor in ahead:
            tensor.record_stream(trainer)
        batch, ahead = ahead, copy(next(batches))
        yield batch
