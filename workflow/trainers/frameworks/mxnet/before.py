"""What to know and to do before importing MXNet."""

import os

from trainers.contract import process
from trainers.contract.backend import Place

_NAMES = ("HOROVOD_RANK", 0), ("HOROVOD_LOCAL_RANK", 0), ("HOROVOD_SIZE", 1)
PLACE = Place(*(int(os.environ.get(name, default)) for name, default in _NAMES))


def prepare(flags):
    """Keep to this rank's cores; GPUs' variables are set before their libraries are loaded."""
    if flags.device == "cpu":
        process.keep_to_own_cores(PLACE.rank, flags.threads)
    else:
        os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")  # fp32 means fp32, not TF32
        # DOUBT: nvidia.py's SETTINGS.gpu_environment come here, of system.yaml's `environment:`.
