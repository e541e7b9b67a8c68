"""Train with PyTorch: JPEGs decoded by threads on the CPU, torch's own optimizer."""

import functools

import jpegs
import torch
from pytorch.data import synthetic_batches
from pytorch.training import run, torch_sgd


def input_batches(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], in host or device memory."""
    if flags.input == "synthetic":
        return synthetic_batches(flags, rank, device)
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


if __name__ == "__main__":
    run(input_batches, torch_sgd)
