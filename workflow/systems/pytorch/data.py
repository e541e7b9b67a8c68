"""Batches for PyTorch, in memory that a GPU can copy from while it trains."""

import functools
import itertools

import jpegs
import resnet50
import torch


def input_batches(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], in host or device memory."""
    if flags.input == "synthetic":
        batch = [torch.from_numpy(array) for array in resnet50.synthetic_batch(flags, rank)]
        return itertools.repeat([tensor.to(device) for tensor in batch])
    pinned = device.type == "cuda"
    shape = (flags.batch_size, flags.image_size, flags.image_size, 3)

    def new_batch():
        return (
            torch.empty(shape, dtype=torch.uint8, pin_memory=pinned),
            torch.empty(flags.batch_size, dtype=torch.int64, pin_memory=pinned),
        )

    # Page-locked memory belongs to the thread's current GPU.
    start = functools.partial(torch.cuda.set_device, device) if pinned else None
    return jpegs.batches(flags, rank, world_size, new_batch, start)


def on_device(batches, device):
    """Batches on the device; a GPU copies the next one while it trains on this one."""
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
