"""Batches for PyTorch, on the device that trains."""

import numpy as np
import torch


def prepared(batches, network, device):
    """Batches on the host, as tensors, as a model takes them, if it says how to prepare them."""
    batches = map(_tensors, batches)
    if not hasattr(network, "prepared"):
        return batches
    made = map(network.prepared, batches)
    if device.type == "cpu":
        return made
    return ([tensor.pin_memory() for tensor in batch] for batch in made)


def _tensors(batch):
    return [torch.from_numpy(one) if isinstance(one, np.ndarray) else one for one in batch]


def in_host_memory(batches, device):
    """Batches of arrays as tensors in host memory, page-locked for a GPU.

    So it can copy them while it trains.
    """
    for batch in batches:
        tensors = _tensors(batch)
        yield [one.pin_memory() for one in tensors] if device.type == "cuda" else tensors


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
