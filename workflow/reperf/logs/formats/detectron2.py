"""Facebook's Detectron2: a clock of whole seconds without a year, and iterations from 0.

    [06/11 13:51:41 d2.utils.events]:  eta: 0:05:22  iter: 19  total_loss: 1.986  loss_cls: 0.595  .. time: 1.1678  data_time: 0.0222  lr: 1.6068e-05  max_mem: 2725M
    [06/11 13:51:41] d2.utils.events INFO:  eta: 0:05:22  iter: 19  total_loss: 1.986  loss_cls: 0.595  .. time: 1.1678  data_time: 0.0222  lr: 1.6068e-05  max_mem: 2725M

The second is what it writes to a file. The printed time is a mean over all iterations, and a rough check
on the stamps.
The batch is that of all devices, unless it says that it scales the configuration.

Source: github.com/facebookresearch/detectron2, detectron2/utils/events.py and logger.py; lines as in
public documentation of trainings. No extractor was published.
"""

from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, facts_by, marked

_ARGUMENTS = facts_by(
    world_size=r"Rank of current process: \d{1,9}\. World size: (\d{1,9})\s",
    global_batch=r"\bIMS_PER_BATCH: (\d{1,9})\s",
)
_SCALES = b"Auto-scaling the config to batch_size="


@marked(*_ARGUMENTS.marks, _SCALES)
def _facts(head: bytes) -> Iterator[Fact]:
    scaled = _SCALES in head
    return (one for one in _ARGUMENTS(head) if not scaled or one[0] != "global_batch")


FORMAT = Format(
    name="detectron2",
    system="detectron2",
    marker=b".utils.events",
    pattern=r"\[{YEARLESS}(?:\] (?:d2|detectron2)\.utils\.events INFO"
    r"| (?:d2|detectron2)\.utils\.events\]): +(?:eta: [^\r\n]{1,40}? +)?"
    r"iter: {ITERATION}  [^\r\n]{0,4000}?(?:(?<!_)\btime: {PACE} [^\r\n]{0,400}?)?\blr: {NUMBER}{END}",
    evaluates=rb": Start inference on \d",
    facts=_facts,
    counts_from=0,
    unit="images/s",
)
