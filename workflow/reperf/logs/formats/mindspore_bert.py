"""MindSpore 1.1's BERT: the lines are shown in mindspore_resnet50.py.

Source: MindSpore 1.1 model zoo, official/nlp/bert; DLPerf
MindSpore/bert/extract_mindspore_logs_time.py.
"""

import re

from reperf.logs.format import Format, line
from reperf.logs.formats.mindspore_resnet50 import TIME, published, reader


def _iteration(match: re.Match[bytes]) -> int:
    return int(match["step"])


FORMAT = Format(
    name="mindspore-bert",
    system="mindspore",
    marker=b" step",
    pattern=line(
        r"epoch: \d{1,9}\.\d{1,3}, current epoch percent: \d\.\d{1,6}, step: (?P<step>\d{1,9}), "
        rf"outputs are [^\r\n]{{0,300}}|{TIME}"
    ),
    remembering=reader(_iteration),
    unit="sentences/s",
    published=published(20, 120),
)
