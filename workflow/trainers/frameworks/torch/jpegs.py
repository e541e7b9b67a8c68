"""JPEGs for PyTorch, from records or a folder, decoded on the CPU."""

import torch

from trainers.inputs import jpegs


def decoded_jpegs(flags, rank, world_size, device):
    lock = {"page_lock": _page_lock} if device.type == "cuda" else {}
    return jpegs.batches(flags, rank, world_size, **lock)


def _page_lock(array):
    """Let GPUs copy an array's bytes by themselves."""
    # Else the thread that gives the GPU its work would copy them, for longer than the rest takes.
    locked = torch.cuda.cudart().cudaHostRegister(array.ctypes.data, array.nbytes, 0)
    torch.cuda.check_error(locked)
