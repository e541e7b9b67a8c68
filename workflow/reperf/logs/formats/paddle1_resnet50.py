"""PaddleCV 1.8's image classification: rank 0 prints how long each batch took.

    [Pass 0, train batch 20] \\tloss 6.9, acc1 0.0, acc5 0.0, lr 0.00100, elapse 0.3412 sec

Batches count from 0.

Source: github.com/PaddlePaddle/models at release/1.8,
PaddleCV/image_classification/utils/utility.py; DLPerf
PaddlePaddle/resnet50v1.5/extract_paddle_logs.py.
"""

from reperf.logs import estimators
from reperf.logs.facts import Facts
from reperf.logs.format import Format, Record, facts_by


def _speed(record: Record, facts: Facts) -> float:
    return round(facts.need("global_batch") / estimators.needed(record.duration), 4)


FORMAT = Format(
    name="paddle1-resnet50",
    system="paddlepaddle",
    marker=b", train batch ",
    pattern=r"\[Pass {EPOCH}, train batch {ITERATION}\]\s+loss {NUMBER},"
    r"(?: acc\d {NUMBER},){0,2} lr {NUMBER}, elapse {DURATION} sec",
    # Each process prints its arguments; --batch_size is a node's.
    facts=facts_by(
        node_batch=r"\bbatch_size: (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
    published=estimators.mean_speed(20, 120, _speed),
    notes={
        "timing": "the time of each batch",
        "extractor": "arithmetic mean of batch / time of lines 21 to 120",
    },
)
