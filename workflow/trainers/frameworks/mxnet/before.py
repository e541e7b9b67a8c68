"""What to know before importing MXNet."""

from trainers.contract.backend import place_in

PLACE = place_in("HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE")
