"""Train as NVIDIA's PyTorch container does: DALI, a fused optimizer, else as `pytorch` does."""

from dali_input import build_pipeline
from nvidia.dali.plugin.pytorch import DALIGenericIterator
from pytorch.data import synthetic_batches
from pytorch.training import run, torch_sgd

try:
    # NVIDIA's apex, which its container has; PyPI's is another package.
    from apex.optimizers import FusedSGD as sgd
except ImportError:
    sgd = torch_sgd


def input_batches(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], on the device."""
    if flags.input == "synthetic":
        return synthetic_batches(flags, rank, device)
    pipeline = build_pipeline(flags, rank, world_size, device.index)
    decoded = DALIGenericIterator([pipeline], ["images", "labels"])
    return ((one["images"], one["labels"][:, 0]) for (one,) in decoded)


if __name__ == "__main__":
    run(input_batches, sgd)
