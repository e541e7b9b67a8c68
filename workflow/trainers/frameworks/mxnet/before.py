"""What to know and to do before importing MXNet."""

from trainers.contract import process
from trainers.contract.backend import place_in

PLACE = place_in("HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE")


def prepare(flags):
    """Keep to this rank's cores."""
    if flags.device == "cpu":
        process.keep_to_own_cores(PLACE.rank, flags.threads)
