"""Logs of MLPerf Training since v4.0 that stamp blocks between two evaluations, and count samples.

    :::MLLOG {"time_ms": 1715335350757, "event_type": "INTERVAL_START", "key": "block_start", "value": "training_step", "metadata": {"samples_count": 51200, ..}}

An iteration here is a batch: so many samples divided by the global batch, which another event says
before. A start counts only if it stands at the most samples that any event has counted before it: some
programs count there how long the block will be. The stops are not read: some count its start.

Source: github.com/mlcommons/training_results_v4.0, NVIDIA's and others' stable_diffusion. No extractor
was published.
"""

import re

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import (
    MARK,
    event_of,
    facts_in,
    has_ended,
    is_number,
    is_whole,
    samples_counted,
)
from reperf.logs.format import Format, Read, Record


def _remembering(_format: Format) -> Read:
    batch = 0
    counted: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal batch
        event = event_of(match[0])
        key, value, metadata = event.get("key"), event.get("value"), event.get("metadata")
        if key == "global_batch_size" and type(value) is int:
            batch = value
            counted.clear()  # a run begins
        samples = metadata.get("samples_count") if isinstance(metadata, dict) else None
        if not is_whole(samples) or samples < counted.get(rank, 0):
            return None
        counted[rank], time = samples, event.get("time_ms")
        if key != "block_start" or batch < 1 or samples % batch or not is_number(time):
            return None
        return Record(samples // batch, rank=rank, time=time / 1000, tick=0.001, text=match[0])

    return read


FORMAT = Format(
    name="mlperf-blocks",
    system="mlperf",
    marker=MARK,
    pattern=r':::MLLOG \{[^\r\n]{0,300}?"key": ?"(?:global_batch_size"'
    r'|[a-z_]{1,40}"[^\r\n]{0,2000}?"samples_count")[^\r\n]{0,2000}\}{END}',
    clock=MILLISECONDS,
    remembering=_remembering,
    evaluates=rb'"key": ?"eval_accuracy"',
    facts=facts_in,
    counts=samples_counted,
    ended=has_ended,
    yields=4,
    counting="the log's own samples, in batches",
)
