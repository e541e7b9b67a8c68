"""Whether the systems of a suite started from the same model and saw the same first batch.

Where a workload drops units out at random, the losses of real runs say little. So trainers log
their first batch's loss without dropout before they train, and these must agree.
"""

import pandas as pd

TOLERANCE = 1e-3
"""How far the losses of two systems may be apart in fp32, from rounding alone."""
_SAME_BATCH = ["suite", "batch_size_per_device", "topology", "repeat"]


def strays(measurements: pd.DataFrame) -> pd.Series:
    """Which runs start from another loss than most others that were given the same first batch.

    Args:
        measurements: as read_measurements gives them. Only runs made here are compared, and of them
            those in fp32 that gave a number.

    Returns:
        For each of those that stray, by its index, what most others' loss is: their median.
    """
    wanted = {"source": "", "precision": "fp32", "status": "ok"}
    ours = measurements[(measurements[list(wanted)] == wanted).all(axis="columns")]
    found = {}
    for _, group in ours[ours["start_loss"].notna()].groupby(_SAME_BATCH, sort=False):
        losses = group["start_loss"]
        for index, loss in losses.items():
            others = losses.drop(index)
            if ((others - loss).abs() > TOLERANCE).sum() * 2 > len(others):
                found[index] = float(others.median())
    return pd.Series(found, dtype="float64")
