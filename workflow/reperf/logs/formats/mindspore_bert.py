"""MindSpore 1.1's BERT with data sinking: a line that counts steps, then one with their time.

    epoch: 12.0, current epoch percent: 0.100, step: 120, outputs are (..)
    epoch time: 2105.123 ms, per step time: 210.512 ms

Source: MindSpore 1.1 model zoo, official/nlp/bert; DLPerf
MindSpore/bert/extract_mindspore_logs_time.py.
"""

from reperf.logs.format import Format, Prints
from reperf.logs.formats.mindspore_resnet50 import TIMES, joined, published

FORMAT = Format(
    name="mindspore-bert",
    system="mindspore",
    marker=b" step",
    pattern=r"epoch: \d{1,9}\.\d{1,3}, current epoch percent: \d\.\d{1,6}, step: (?P<step>\d{1,9}), "
    r"outputs are [^\r\n]{0,300}|" + TIMES,
    remembering=joined,
    unit="sentences/s",
    published=published(20, 120),
    prints=Prints.IN_TWO_LINES,
    notes={
        "timing": "the time of each epoch of sunk steps",
        "extractor": "sum over all ranks of the times of 20 to 120",
    },
)
