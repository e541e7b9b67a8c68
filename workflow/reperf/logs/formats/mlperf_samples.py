"""Logs of MLPerf Training submissions since v5.0: `tracked_stats` that count steps and samples.

    :::MLLOG {"time_ms": 1760032496633, "key": "tracked_stats", "value": {"train_loss": 2.05}, "metadata": {"samples_count": 80, "step": 10, ..}, ..}

Language models and flux print one every few steps, with a loss and no throughput, and another with
throughput per evaluation, which mlperf.py reads. Some count steps from 0.

Source: github.com/mlcommons/training_results_v5.1, custom_callbacks.py of its submissions of
llama2_70b_lora, llama31_8b, llama31_405b and flux1. No extractor was published.
"""

import re

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import (
    EVENT_LINE,
    facts_of,
    has_ended,
    is_number,
    samples_counted,
    tracked_stats,
)
from reperf.logs.format import Format, Record

_LOSSES = ("train_loss", "reduced_train_loss")


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event, value, metadata = tracked_stats(match)
    if not isinstance(event.get("time_ms"), int):
        return None
    step, samples = metadata.get("step"), metadata.get("samples_count")
    if not any(name in value for name in _LOSSES) or not is_number(step) or not is_number(samples):
        return None
    time = event["time_ms"] / 1000
    return Record(int(step), rank=rank, time=time, tick=0.001, text=match[0])


FORMAT = Format(
    name="mlperf-samples",
    system="mlperf",
    marker=b'"samples_count"',
    pattern=EVENT_LINE,
    clock=MILLISECONDS,
    read=_read,
    facts=facts_of({"max_sequence_length": "sample_tokens"}),  # their samples are packed to it
    counts=samples_counted,
    counts_from=0,
    ended=has_ended,
    counting="the log's own steps",
)
