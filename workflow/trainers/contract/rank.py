"""How a rank begins and ends, whatever its framework."""

from contextlib import contextmanager

from trainers.contract.affinity import keep_near_gpu
from trainers.contract.flags import parse_flags
from trainers.contract.steplog import StepLog


@contextmanager
def training(recipe, rank, world_size, local_rank):
    """Train as one rank inside this block; the process ends with it.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        rank: this process's place among all, from 0.
        world_size: number of ranks, each with one device.
        local_rank: its place among those of its node, which is its GPU's number there.

    Yields:
        The flags, with `cpus`, those next to the rank's GPU; and the step log.
    """
    flags = parse_flags(recipe)
    flags.cpus = keep_near_gpu(local_rank) if flags.device == "cuda" else None
    log = StepLog(recipe, flags, rank, world_size)
    with log.to_the_end():
        yield flags, log
