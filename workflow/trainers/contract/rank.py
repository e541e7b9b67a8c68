"""How a rank begins and ends, whatever its framework."""

from contextlib import contextmanager

from trainers.contract.flags import parse_flags
from trainers.contract.steplog import StepLog


@contextmanager
def training(recipe, rank, world_size):
    """Train as one rank inside this block; the process ends with it.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        rank: this process's place among all, from 0.
        world_size: number of ranks, each with one device.

    Yields:
        The flags and the step log.
    """
    flags = parse_flags(recipe)
    log = StepLog(recipe, flags, rank, world_size)
    with log.to_the_end():
        yield flags, log
