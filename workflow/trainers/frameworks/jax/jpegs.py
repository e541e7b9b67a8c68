"""JPEGs for JAX, from records or a folder, decoded on the CPU."""

from trainers.inputs import jpegs


def decoded_jpegs(flags, rank, world_size, device):
    return jpegs.batches(flags, rank, world_size)
