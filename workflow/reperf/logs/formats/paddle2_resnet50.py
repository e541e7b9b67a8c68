"""PaddleClas since 2020, static and dynamic graphs, the speed of one device as a running average.

    2021-05-19 16:26:45 INFO: epoch:0   train step:90   top1: 0.0078 top5: 0.0078 loss:  6.9192 lr: 0.100000, batch_cost: 0.09530 s, reader_cost: 0.00771 s, ips: 1343.17002 images/sec.
    [2021/06/07 12:00:01] root INFO: epoch:0   train step:20   loss: 6.9 lr: 0.1 batch_cost: 0.33 s, reader_cost: 0.01 s, ips: 386.35 samples/sec
    [2022/01/02 12:00:01] ppcls INFO: [Train][Epoch 1/120][Iter: 20/5005]lr: 0.1, CELoss: 6.9, batch_cost: 0.33s, reader_cost: 0.01, ips: 386.35 images/sec, eta: 1 day

Steps count from 0. The average leaves out the first five.

Source: github.com/PaddlePaddle/PaddleClas, ppcls/engine/train/utils.py, ppcls/static/program.py and,
of 2020, tools/program.py; logs in github.com/PaddlePaddle/Perf, ResNet50V1.5/logs. No extractor was
published.
"""

import re
from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, facts_by, marked

_ARGUMENTS = facts_by(
    batch_size=r"\bDataLoader\.Train\.sampler\.batch_size=(\d{1,9})\b",
)
# What PaddlePaddle's launcher prints before it starts the ranks.
_LAUNCHED = re.compile(
    rb"LAUNCH INFO [^\r\n]{1,30} (?:devices: (?P<devices>\d{1,4}(?:,\d{1,4}){0,1000})"
    rb"|nnodes: (?P<nodes>\d{1,6}))\s"
)


@marked(*_ARGUMENTS.marks, b"LAUNCH INFO ")
def _facts(head: bytes) -> Iterator[Fact]:
    for match in _LAUNCHED.finditer(head):
        if match["devices"]:
            yield "devices_per_node", match["devices"].count(b",") + 1
        elif int(match["nodes"]) > 0:
            yield "nodes", int(match["nodes"])
    yield from _ARGUMENTS(head)


FORMAT = Format(
    name="paddle2-resnet50",
    system="paddlepaddle",
    marker=b"ips: ",
    pattern=r"\[?{DATE}(?:\] \w{1,20})? INFO: "
    r"(?:\[Train\]\[Epoch |epoch:){EPOCH}(?:/\d{1,9}\]\[Iter: |\s+train step:){ITERATION}\b"
    r"[^\r\n]{0,1000}\bips: {RATE} (?:images|samples)/s(?:ec)?\b",
    facts=_facts,
    rate_times=("world_size",),
    counts_from=0,
    unit="images/s",
    notes={"timing": "time stamps, in whole seconds: the window must be 100 s or longer"},
)
