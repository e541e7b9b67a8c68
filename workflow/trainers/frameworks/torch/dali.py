"""Images for PyTorch that NVIDIA DALI reads and decodes."""

from nvidia.dali.plugin.pytorch import DALIGenericIterator

from trainers.inputs.dali import build_pipeline


def dali_images(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], decoded by DALI."""
    pipeline = build_pipeline(flags, rank, world_size, device.index)
    decoded = DALIGenericIterator([pipeline], ["images", "labels"])
    return ((one["images"], one["labels"][:, 0]) for (one,) in decoded)
