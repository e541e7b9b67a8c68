"""How many micro-batches a pipeline cuts a batch into: as asked, or by default."""

from argparse import Namespace

import pytest
from trainers.contract.stages import micro_batches_of


@pytest.mark.parametrize(
    ("batch_size", "stages", "asked", "count"),
    [
        (64, 2, None, 8),
        (12, 2, None, 6),  # 8 does not divide it
        (4, 2, None, 4),
        (6, 3, None, 6),
        (10, 2, None, 2),
        (64, 2, 2, 2),
        (8, 1, None, 4),
    ],
)
def test_a_stage_has_four_micro_batches_where_they_divide_the_batch(
    batch_size, stages, asked, count
):
    flags = Namespace(batch_size=batch_size, pipeline=(1,) * stages, micro_batches=asked)
    assert micro_batches_of(flags) == count


@pytest.mark.parametrize(("stages", "asked", "count"), [(3, None, 3), (2, 5, 5)])
def test_a_batch_that_cannot_be_cut_is_refused(stages, asked, count):
    flags = Namespace(batch_size=8, pipeline=(1,) * stages, micro_batches=asked)
    with pytest.raises(ValueError, match=f"of 8 cannot be cut into {count} micro-batches"):
        micro_batches_of(flags)
