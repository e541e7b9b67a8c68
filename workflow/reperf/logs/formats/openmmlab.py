"""OpenMMLab's MMSegmentation and the like, as mmcv's text logger prints them.

    2022-02-10 06:17:39,706 - mmseg - INFO - Iter [8/40]	lr: 8.426e-03, eta: 0:00:58, time: 0.895, data_time: 0.019, memory: 19187, decode.loss_ce: 2.1385, ..
    2021-05-20 10:11:12,123 - mmdet - INFO - Epoch [1][50/7330]	lr: 1.978e-03, eta: 12:00:00, time: 0.490, data_time: 0.050, memory: 3900, ..

The name of the program came in 2020. The printed time is the mean of the iterations since the previous
line. An iteration is a batch, also where gradients of several are accumulated. gpu_ids is that of one
process under some launchers, so that one device is believed only where nothing is distributed.

Source: github.com/open-mmlab/mmcv, mmcv/runner/hooks/logger/text.py; logs of the first kind in
github.com/PaddlePaddle/Perf at e7a07c4, DeepLabV3P/OtherReports and HRNetW18/OtherReports. No
extractor was published.
"""

from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, facts_by, marked

_ARGUMENTS = facts_by(
    batch_size=r"\bsamples_per_gpu ?= ?(\d{1,9})\b",
    world_size=r"\bgpu_ids = range\(0, ([2-9]|\d\d{1,8})\)",
)


@marked(*_ARGUMENTS.marks, b"Distributed training: False", b"gpu_ids = range(0, 1)")
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _ARGUMENTS(head)
    if b"Distributed training: False" in head and b"gpu_ids = range(0, 1)" in head:
        yield "world_size", 1


FORMAT = Format(
    name="openmmlab",
    system="openmmlab",
    marker=b", data_time: ",
    pattern=r"{DATE} - (?:\w{1,40} - )?INFO - (?:Iter \[|Epoch \[{EPOCH}\]\[){ITERATION}/"
    r"\d{1,12}\]\s+lr: [^\r\n]{1,200}?, eta: [^\r\n]{1,40}?, time: {DURATION}, "
    r"data_time: {NUMBER}(?:,|{END})",
    # The second is mmcv's progress bar, of a validation that prints nothing else.
    evaluates=rb" - INFO - (?:Iter|Epoch)\(val\) \[|\d task/s, elapsed: ",
    facts=_facts,
    unit="images/s",
)
