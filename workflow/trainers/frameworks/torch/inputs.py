"""Batches for PyTorch, on the device that trains."""

import numpy as np
import torch


def prepared(batches, network, device):
    """Batches on the host, as tensors, as a model takes them, if it says how to prepare them."""
    # They are page-locked for a GPU, which can copy them then while it trains.
    batches = map(_tensors, batches)
    if hasattr(network, "prepared"):
        batches = map(network.prepared, batches)
    if device.type == "cpu":
        return batches
    return ([_page_locked(one) for one in batch] for batch in batches)


def _page_locked(tensor):
    return tensor if tensor.is_cuda or tensor.is_pinned() else tensor.pin_memory()


def _tensors(batch):
    return [torch.from_numpy(one) if isinstance(one, np.ndarray) else one for one in batch]


def on_device(batches, device):
    """Batches on the device; a GPU copies the next one while it trains on the current one."""
    if device.type == "cpu":
        yield from batches
    copier, trainer = torch.cuda.Stream(device), torch.cuda.current_stream(device)

    def copy(batch):
        with torch.cuda.stream(copier):
            return batch, [tensor.to(device, non_blocking=True) for tensor in batch]

    _on_host, ahead = copy(next(batches))
    while True:
        trainer.wait_stream(copier)
        for tensor in ahead:
            tensor.record_stream(trainer)
        batch, following = ahead, next(batches)
        # A loader may refill a batch's memory once nothing refers to it. The copy began an
        # iteration ago, and does not wait for training.
        copier.synchronize()
        _on_host, ahead = copy(following)
        yield batch
