"""What to know before importing numpy."""

from trainers.contract.backend import place_in

PLACE = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE")
