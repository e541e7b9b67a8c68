"""What to know before importing TensorFlow, 1.15 or 2."""

import json
import os

from trainers.contract import settings
from trainers.contract.backend import Place, place_in

PLACE = place_in("HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE")

if "TF_CONFIG" in os.environ and "HOROVOD_RANK" not in os.environ:  # workers of TensorFlow 2
    _CLUSTER = json.loads(os.environ["TF_CONFIG"])
    PLACE = Place(
        rank=_CLUSTER["task"]["index"],
        local_rank=int(os.environ["LOCAL_RANK"]),
        world_size=len(_CLUSTER["cluster"]["worker"]),
    )

if "SERVERS" in os.environ:  # of parameters; trainers.launchers.roles starts them and trainers
    PLACE = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE")
    settings.variables({"TF_CPP_MIN_LOG_LEVEL": "2"})  # errors
