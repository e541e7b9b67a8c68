"""What a call must know of a search for the largest batch: what is tried, and on which GPUs.

`reperf.training.largest` makes the search; no call that plans needs what that imports.
"""

from typing import Any

from reperf.config import Run

ITERATIONS = 8
"""Of a trial: optimizers and collectives have taken their memory after two or three."""
SHARE = 97
"""Percent of a memory limit that trials may take. How much address space the same program takes
differs by up to 2.5 % from run to run: what trained within the whole limit may not do so again."""
TIME_LIMITS = 4
"""How long a search may take, in time limits of a run; a trial may take one."""


def run_of_search(run: Run, topology: str) -> Run:
    """What is tried to find a run's batch size.

    Args:
        topology: the one of its suite with the most devices.
    """
    limit = run.memory_limit
    return run.model_copy(
        update={
            "suite": "largest",
            "memory_limit": limit if limit is None else limit * SHARE // 100,
            "topology": topology,
            "repeat": 1,
            "seed": 1,
            "iterations": ITERATIONS,
            # Runs, too, go on for some time without a look at the loss, which frees memory.
            "print_every": ITERATIONS,
        }
    )


def models_of(found: tuple[Any, ...]) -> tuple[str, ...]:
    """GPUs by their models and memory, in their order."""
    return tuple(f"{gpu.name}, {gpu.memory_bytes} bytes" for gpu in found)
