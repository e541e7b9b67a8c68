"""The device memory that a run will take, estimated before it starts."""

from trainers.contract.recipe import AdamW

from reperf.config.run import Run
from reperf.systems import load_systems, load_workloads

RECOMPUTE = "--recompute"
"""The flag for recomputing features; the word after it says which."""


def estimated_memory(run: Run) -> int | None:
    """Bytes of a device for weights, gradients, the optimizer's moments, and features of a batch.

    Copies of weights on their way are not in it, nor what libraries take. None: the recipe does not
    say what a sample keeps, the batch is not known yet, or the system, variant or shape is not
    known here.
    """
    workload = load_workloads()[run.workload]
    has_recipe = workload.recipe_file.exists()
    kept = getattr(workload.numbers, "kept_bytes", None) if has_recipe else None
    system = load_systems().get(run.system)
    names = run.variant.split("+") if run.variant else []
    if kept is None or system is None or not {*names} <= system.variants.keys():
        return None
    is_known = run.shape.keys() == workload.default_shape.keys()
    count = workload.parameters_of(run.shape) if is_known else None
    if count is None or not isinstance(run.batch_size, int):
        return None
    flags = [flag for each in system.varied(run.variant) for flag in each.flags]
    recompute = flags[flags.index(RECOMPUTE) + 1] if RECOMPUTE in flags else None
    halves = run.precision not in ("fp32", "tf32")
    shard, tensor = (run.parallel.shard, run.parallel.tensor) if run.parallel else (None, None)
    moments = 2 if isinstance(workload.numbers.OPTIMIZER, AdamW) else 1
    of_weights = 4 * (2 + moments) * count // (shard or 1)
    return int((of_weights + run.batch_size * kept(run.shape, halves, recompute)) // (tensor or 1))
