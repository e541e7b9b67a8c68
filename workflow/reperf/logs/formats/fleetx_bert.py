"""FleetX's collective BERT benchmark: PaddleNLP 1.8's line, with one process per device.

    epoch: 1, progress: 1/1, step: 60, loss: 10.487363, ppl: 17796.216797, next_sent_acc: 0.560417, speed: 1.060437 steps/s, file: demo_wiki_train.gz

Steps/s count the steps of all processes together, so a step is one device's batch; PaddleNLP's is a
node's. Nothing in a log tells the two apart. Lines have no time stamp and no extractor was
published, so no method measures these logs.

Source: github.com/PaddlePaddle/FleetX at 918acb2, deprecated/benchmark/collective/bert/train.py. No
extractor was published.
"""

from reperf.logs.format import Format
from reperf.logs.formats.paddle1_bert import PATTERN

FORMAT = Format(
    name="fleetx-bert",
    system="fleetx",
    marker=b" steps/s, file: ",
    pattern=PATTERN,
    unit="sentences/s",
    notes={"speed_of": "steps of one device"},
)
