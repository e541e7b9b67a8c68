"""What to know and to do before importing PyTorch."""

from trainers.contract import process
from trainers.contract.backend import place_in

PLACE = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE")


def prepare(flags):
    """Keep to this rank's cores."""
    if flags.device == "cpu":
        process.keep_to_own_cores(PLACE.rank, flags.threads)
