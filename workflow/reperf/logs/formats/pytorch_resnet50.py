"""PyTorch's ImageNet example: every rank prints, with neither label nor time stamp.

    Epoch: [0][ 5/53]\\tTime  0.360 ( 2.410)\\tData  0.108 ( 0.072)\\tLoss 2.0644e+01 (1.9712e+01)\\t..

Batches count from 0; the time in parentheses is their mean so far, and is not read. If several ranks print into one log, the window rule refuses it.

Source: github.com/pytorch/examples at 49ec0bd, imagenet/main.py; DLPerf
PyTorch/resnet50v1.5/extract_pytorch_logs_time.py.
"""

from collections.abc import Sequence

from reperf.logs import estimators
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Format, Record, facts_by

_SKIPPED, _FIRST, _LAST = 5, 20, 120


def _published(records: Sequence[Record], facts: Facts) -> Estimate:
    """The mean Time of lines 21 to 120 after batch 5, whichever ranks printed them.

    The extractor's expression keeps one digit before the decimal point: 12.054 counts as 2.054.
    """
    lines = [one for one in records if one.iteration > _SKIPPED][:_LAST]
    estimators.enough(lines, _LAST)
    batch = facts.need("global_batch")
    seconds = sum(round(estimators.needed(one.duration) % 10, 3) for one in lines[_FIRST:])
    steps = _LAST - _FIRST
    speed = round(float(batch / (estimators.needed(seconds) / steps)), 2)
    return Estimate(speed, lines[_FIRST - 1].iteration, lines[-1].iteration, batch * steps, seconds)


FORMAT = Format(
    name="pytorch-resnet50",
    system="pytorch",
    marker=b"Epoch: [",
    pattern=r"Epoch: \[{EPOCH}\]\[\s*{ITERATION}/{TOTAL}\]\s+Time\s+{DURATION} \(\s*{NUMBER}\)\s+"
    r"Data\s+{NUMBER} \(\s*{NUMBER}\)\s+Loss {NUMBER} ",
    # --batch-size is a node's, --world-size the number of nodes.
    facts=facts_by(
        node_batch=r"main\.py .*--batch-size[ =](\d{1,9})\s",
        nodes=r"main\.py .*--world-size[ =](\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
    published=_published,
    notes={
        "timing": "the time of each batch",
        "extractor": (
            "mean time of lines 21 to 120 after batch 5, whichever ranks printed them; only one "
            "digit before the decimal point is kept"
        ),
    },
)
