"""PaddleNLP 1.8's BERT pretraining: steps/s, without a time stamp.

    epoch: 1, progress: 1/1, step: 60, loss: 10.487363, ppl: 17796.216797, next_sent_acc: 0.560417, speed: 1.060437 steps/s, file: demo_wiki_train.gz

A process has all devices of a node, and steps/s count the steps of all processes together. FleetX
prints the same line but means something else by it: see fleetx_bert.py.

Source: github.com/PaddlePaddle/models at release/1.8,
PaddleNLP/pretrain_language_models/BERT/train.py; DLPerf PaddlePaddle/bert/extract_paddle_logs.py.
"""

from reperf.logs import estimators
from reperf.logs.facts import Facts
from reperf.logs.format import Format, Record

PATTERN = (
    r"(?<!\] )epoch: {EPOCH}, progress: \d{1,9}/\d{1,9}, step: {ITERATION}, loss: {NUMBER}, "
    r"ppl: {NUMBER}, next_sent_acc: {NUMBER}, speed: {RATE} steps/s, file: "
)


def _speed(record: Record, facts: Facts) -> float:
    per_step = facts.need("batch_size") * facts.need("devices_per_node")
    return round(estimators.needed(record.rate) * per_step, 4)


FORMAT = Format(
    name="paddle1-bert",
    system="paddlepaddle",
    marker=b" steps/s, file: ",
    pattern=PATTERN,
    unit="sentences/s",
    published=estimators.mean_speed(20, 120, _speed),
    notes={
        "speed_of": "steps of one node",
        "extractor": "arithmetic mean of steps/s times batch per node of lines 21 to 120",
    },
)
