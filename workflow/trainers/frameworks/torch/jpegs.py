"""JPEGs for PyTorch, from records or a folder, decoded on the CPU."""

from trainers.inputs import jpegs


def decoded_jpegs(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], as numpy's arrays."""
    return jpegs.batches(flags, rank, world_size)
