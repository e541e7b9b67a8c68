"""The device memory that a run will take, estimated before it starts."""

from trainers.contract.recipe import AdamW

from reperf.config.run import Run
from reperf.systems import load_systems, load_workloads

RECOMPUTE = "--recompute"
"""The flag for recomputing features; the word after it says which."""


def estimated_memory(run: Run) -> int | None:
    """Bytes of a device for weights, gradients, the optimizer's moments, and features of a batch.

    What libraries take for themselves is not in it, nor are copies of weights on their way. None:
    the recipe does not say what a sample keeps, or the batch is not known yet.
    """
    workload = load_workloads()[run.workload]
    kept = getattr(workload.numbers, "kept_bytes", None)
    count = workload.parameters_of(run.shape)
    if kept is None or count is None or not isinstance(run.batch_size, int):
        return None
    flags = [flag for each in load_systems()[run.system].varied(run.variant) for flag in each.flags]
    recompute = flags[flags.index(RECOMPUTE) + 1] if RECOMPUTE in flags else None
    halves = run.precision not in ("fp32", "tf32")
    shard, tensor = (run.parallel.shard, run.parallel.tensor) if run.parallel else (None, None)
    moments = 2 if isinstance(workload.numbers.OPTIMIZER, AdamW) else 1
    of_weights = 4 * (2 + moments) * count // (shard or 1)
    return int((of_weights + run.batch_size * kept(run.shape, halves, recompute)) // (tensor or 1))
