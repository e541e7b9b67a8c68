"""Images for PyTorch that NVIDIA DALI reads and decodes."""

from nvidia.dali.plugin.pytorch import DALIGenericIterator

from trainers.inputs.dali import build_pipeline


def dali_images(flags, rank, world_size, device):
    pipeline = build_pipeline(flags, rank, world_size, device.index)
    decoded = DALIGenericIterator([pipeline], ["images", "labels"])
    return ((one["images"], one["labels"][:, 0]) for (one,) in decoded)
