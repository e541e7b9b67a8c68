"""Batches for PyTorch, on the device that trains."""

import functools
import itertools

import torch

from trainers.contract.weights import synthetic_batch


def synthetic_batches(recipe, flags, rank, device):
    """The rank's synthetic batch, again and again: a list of tensors on the device."""
    batch = [torch.from_numpy(array) for array in synthetic_batch(recipe, flags, rank)]
    return itertools.repeat([tensor.to(device) for tensor in batch])


def decoded_jpegs(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], decoded by threads on the CPU.

    They lie in host memory, which a GPU can copy from while it trains.
    """
    from trainers.inputs import jpegs  # noqa: PLC0415 - needs decoders, synthetic batches do not

    pinned = device.type == "cuda"
    size = flags.shape["image_size"]

    def new_batch():
        return (
            torch.empty((flags.batch_size, size, size, 3), dtype=torch.uint8, pin_memory=pinned),
            torch.empty(flags.batch_size, dtype=torch.int64, pin_memory=pinned),
        )

    # Page-locked memory belongs to the thread's current GPU.
    start = functools.partial(torch.cuda.set_device, device) if pinned else None
    return jpegs.batches(flags, rank, world_size, new_batch, start)


def dali_images(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], decoded by DALI."""
    from nvidia.dali.plugin.pytorch import DALIGenericIterator  # noqa: PLC0415

    from trainers.inputs.dali import build_pipeline  # noqa: PLC0415

    pipeline = build_pipeline(flags, rank, world_size, device.index)
    decoded = DALIGenericIterator([pipeline], ["images", "labels"])
    return ((one["images"], one["labels"][:, 0]) for (one,) in decoded)


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
