"""Batches for PyTorch, on the device that trains."""

import itertools

import torch


def again_and_again(batch, network, device):
    """One batch of numpy's arrays, endlessly, as a model takes it: tensors on the device."""
    batches = iter([[torch.from_numpy(array) for array in batch]])
    (batch,) = prepared(batches, network, device)
    return itertools.repeat([tensor.to(device) for tensor in batch])


def prepared(batches, network, device):
    """Batches on the host as a model takes them, if it says how to prepare them."""
    if not hasattr(network, "prepared"):
        return batches
    made = map(network.prepared, batches)
    if device.type == "cpu":
        return made
    return ([tensor.pin_memory() for tensor in batch] for batch in made)


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
