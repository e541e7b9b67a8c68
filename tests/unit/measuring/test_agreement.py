"""Systems that start from the same model have the same loss on the same first batch."""

import pandas as pd
import pytest
from reperf.measuring.statistics import initial_loss_outliers


def table(*losses: float | None, **same: object) -> pd.DataFrame:
    """One run of each of several systems on the same batch."""
    row = {"suite": "s", "batch_size_per_device": 4, "topology": "1n1g", "repeat": 1}
    row |= {"source": "", "precision": "fp32", "status": "ok"} | same
    return pd.DataFrame([row | {"start_loss": loss} for loss in losses])


@pytest.mark.parametrize(
    ("losses", "found"),
    [
        ((7.2, 7.25, 7.2003), {1: pytest.approx(7.20015)}),
        ((7.2, 7.25), {0: 7.25, 1: 7.2}),
        ((7.2, None), {}),
        ((7.2,), {}),
        ((7.2, 7.25, 7.2, 7.25), {0: 7.25, 1: 7.2, 2: 7.25, 3: 7.2}),
    ],
)
def test_who_differs_from_most_others_is_an_outlier(losses, found):
    assert initial_loss_outliers(table(*losses)).to_dict() == found


@pytest.mark.parametrize(
    ("precision", "inside", "outside"), [("fp32", 0.99e-3, 1.01e-3), ("amp", 0.99e-2, 1.01e-2)]
)
def test_first_losses_agree_up_to_the_rounding_of_their_precision(precision, inside, outside):
    for off, found in ((inside, {}), (outside, {2: 7.2})):
        runs = table(7.2, 7.2, 7.2 + off, precision=precision)
        assert initial_loss_outliers(runs).to_dict() == found


@pytest.mark.parametrize("same", [{"source": "an.zip"}, {"status": "oom"}])
def test_logs_of_others_and_bad_runs_are_not_compared(same):
    assert initial_loss_outliers(table(7.2, 8.0, **same)).empty


@pytest.mark.parametrize("key", ["batch_size_per_device", "topology", "repeat", "suite"])
def test_other_batches_have_other_losses(key):
    both = pd.concat([table(7.2), table(8.0, **{key: 2})], ignore_index=True)
    assert initial_loss_outliers(both).empty
