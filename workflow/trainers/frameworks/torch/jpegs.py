"""JPEGs for PyTorch, from records or a folder, decoded on the CPU."""

import functools

import torch

from trainers.inputs import jpegs


def decoded_jpegs(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], decoded by threads on the CPU.

    They are in host memory, from which a GPU can copy while it trains.
    """
    if device.type == "cpu":
        # numpy asks for large pages, torch does not: a tenth of the page faults.
        return jpegs.batches(flags, rank, world_size)
    size = flags.shape["image_size"]

    def new_batch():
        return (
            torch.empty((flags.batch_size, size, size, 3), dtype=torch.uint8, pin_memory=True),
            torch.empty(flags.batch_size, dtype=torch.int64, pin_memory=True),
        )

    # Page-locked memory belongs to the thread's current GPU.
    start = functools.partial(torch.cuda.set_device, device)
    return jpegs.batches(flags, rank, world_size, new_batch, start)
