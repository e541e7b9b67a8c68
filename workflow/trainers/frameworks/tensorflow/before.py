"""What to know and to do before importing TensorFlow 1.15 or 2."""

import json
import os

from trainers.contract import process
from trainers.contract.backend import Place

CLUSTER = json.loads(os.environ.get("TF_CONFIG", "null"))


def _place():
    if CLUSTER:
        local = int(os.environ["LOCAL_RANK"])
        return Place(CLUSTER["task"]["index"], local, len(CLUSTER["cluster"]["worker"]))
    names = ("HOROVOD_RANK", 0), ("HOROVOD_LOCAL_RANK", 0), ("HOROVOD_SIZE", 1)
    return Place(*(int(os.environ.get(name, default)) for name, default in names))


PLACE = _place()


def prepare(flags):
    """Keep to this rank's cores."""
    if flags.device == "cpu":
        process.keep_to_own_cores(PLACE.rank, flags.threads)
