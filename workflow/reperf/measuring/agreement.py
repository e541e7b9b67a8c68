"""Whether the systems of a suite started from the same model and saw the same first batch.

Where all systems are given the same batch, trainers log its loss before they train, without
dropout. These losses must agree.
"""

import pandas as pd

TOLERANCE, IN_FEWER_BITS = 1e-3, 1e-2
"""How far the losses of two systems may be apart in fp32, and in all else, from rounding alone.

In bfloat16, the losses of ResNet-50 and BERT in PyTorch and TensorFlow 2 were up to 9e-4 apart.
"""
_SAME_BATCH = ["suite", "batch_size_per_device", "topology", "repeat"]


def initial_loss_outliers(measurements: pd.DataFrame) -> pd.Series:
    """Which runs start from another loss than most others that were given the same first batch.

    Args:
        measurements: as read_measurements gives them. Only runs made here are compared, and of them
            those that gave a number.

    Returns:
        For each of those that stray, by its index, what most others' loss is: their median.
    """
    wanted = {"source": "", "status": "ok"}
    ours = measurements[(measurements[list(wanted)] == wanted).all(axis="columns")]
    found = {}
    for _, group in ours[ours["start_loss"].notna()].groupby(_SAME_BATCH, sort=False):
        losses = group["start_loss"]
        for index, loss in losses.items():
            others = losses.drop(index)
            fp32 = group["precision"].iloc[0] == "fp32"
            tolerance = TOLERANCE if fp32 else IN_FEWER_BITS
            if ((others - loss).abs() > tolerance).sum() * 2 > len(others):
                found[index] = float(others.median())
    return pd.Series(found, dtype="float64")
