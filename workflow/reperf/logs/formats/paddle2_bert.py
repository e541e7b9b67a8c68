"""PaddleNLP 2.x's BERT pretraining: means of one device since the previous line.

    global step 20, epoch: 0, batch: 19, loss: 11.2, avg_reader_cost: 0.00012 sec, avg_batch_cost: 0.21 sec, avg_samples: 32.0, ips: 152.38 sequences/sec
    total step: 20, epoch: 0, batch: 19, loss: 11.2, avg_reader_cost: 0.00007 sec, avg_batch_cost: 0.06548 sec, avg_samples: 96.00000, ips: 1464.41865 sequences/sec

The static graph's script says `tobal step:`, since 2023 `total step:`. A line has a time stamp if a
logger printed it: `[2021-06-07 12:00:01,123] [    INFO] - `. Steps are batches, also where gradients
of several are merged.

Source: github.com/PaddlePaddle/PaddleNLP, examples/language_model/bert/run_pretrain.py and
static/run_pretrain.py; logs in github.com/PaddlePaddle/Perf at e7a07c4, Bert/logs. No extractor was
published.
"""

import re
from collections.abc import Iterator

from reperf.logs.averages import durations_since
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints, facts_by

_SAMPLES = re.compile(rb"avg_samples: (\d{1,9})(?:\.0{1,9})?,")


def _tells(record: bytes) -> Iterator[Fact]:
    if samples := _SAMPLES.search(record):
        yield "batch_size", int(samples[1]) or None
    yield "accumulation", 1


FORMAT = Format(
    name="paddle2-bert",
    system="paddlepaddle",
    marker=b"avg_batch_cost: ",
    pattern=r"(?:\[{DATE}\] \[\s*INFO\] - )?"
    r"(?:global step |(?:tobal|total) step: ){ITERATION}, epoch: {EPOCH}, "
    r"batch: \d{1,12}, loss: {NUMBER}, avg_reader_cost: {NUMBER} sec, "
    r"avg_batch_cost: {DURATION} sec, avg_samples: {NUMBER}, ips: {RATE} sequences/sec\b",
    remembering=durations_since(),
    rate_times=("world_size",),
    facts=facts_by(print_every=r"\blogging_steps=(\d{1,9})\b"),
    tells=_tells,
    unit="sentences/s",
    prints=Prints.EVENLY,
    notes={
        "timing": (
            "time stamps, where a logger printed them, or else the mean time of a batch since "
            "the previous line"
        )
    },
)
