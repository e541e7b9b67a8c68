"""Logs of Google's Mask R-CNN and SSD in MLPerf v1.0, whose devices train and evaluate in one loop.

    :::MLLOG {"namespace": "main", "time_ms": 1621234598705, "key": "block_start", "value": null, "metadata": {"first_epoch_num": 1, .., "file": "../models/mask_rcnn/mask_rcnn_main.py"}}

An iteration here is an epoch. A block stops when the devices have evaluated, too; what the host then
does with their output is all that is stamped as an evaluation. No event says which benchmark it is: the
name of the program does.

Source: github.com/mlcommons/training_results_v1.0, Google's maskrcnn and ssd, results and
implementations (mask_rcnn_main.py, ssd_main.py). No extractor was published.
"""

import re

from reperf.logs.events import event_of, facts_in, has_ended, is_whole
from reperf.logs.format import Format, Record


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    metadata = event_of(match[0]).get("metadata")
    epoch = metadata.get("first_epoch_num") if isinstance(metadata, dict) else None
    if not is_whole(epoch):
        return None
    return Record(epoch, rank=rank, text=match[0])


FORMAT = Format(
    name="mlperf-loops",
    system="mlperf",
    marker=b"_main.py",
    pattern=r':::MLLOG \{[^\r\n]{0,300}?"key": ?"block_start"[^\r\n]{0,300}?"first_epoch_num"'
    r"[^\r\n]{0,500}?/(?:mask_rcnn/mask_rcnn|ssd/ssd)_main\.py[^\r\n]{0,500}\}{END}",
    read=_read,
    facts=facts_in,
    ended=has_ended,
    untimed="its devices train and evaluate between the start and the stop of a block, and no line "
    "says for how long they train",
    step_is=("epoch_samples",),
    yields=5,
    counts_from=0,
    counting="0: an iteration is an epoch",
)
