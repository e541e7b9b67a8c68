"""What a call must know of a search for the largest batch: what is tried, and whether it has found.

`reperf.training.largest` makes the search; no call that plans needs what that imports.
"""

from pathlib import Path

from reperf.builds import build_of
from reperf.builds.built import digest_now
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.machine import gpus
from reperf.plans.run_plan import RunPlan
from reperf.training.record import LargestBatch

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


def found_by(path: Path, plan: RunPlan) -> tuple[LargestBatch | None, str]:
    """What a search has found; None if it must be made, and why it must be made again, if so."""
    if not path.exists():
        return None, ""
    try:
        found = LargestBatch.read(path)
    except ReperfError as error:
        return None, str(error)
    image = digest_now(build_of(plan.run))
    here = models_of(gpus()) if plan.run.device == "cuda" and plan.cluster is None else ()
    why = {
        f"{found.status}: {found.reason}": found.status not in ("ok", "oom"),
        "is of another plan": found.plan != plan.digest,
        "the image has changed since": image and found.image != image,
        "was found on other GPUs": here and found.gpus != here,
    }
    said = next((reason for reason, is_so in why.items() if is_so), "")
    return (None, f"{path}: {said}") if said else (found, "")


def models_of(found: tuple) -> tuple[str, ...]:
    """GPUs by their models and memory, in their order."""
    return tuple(f"{gpu.name}, {gpu.memory_bytes} bytes" for gpu in found)
