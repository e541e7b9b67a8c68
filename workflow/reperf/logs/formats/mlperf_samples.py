"""Logs of MLPerf Training submissions since v5.0: `tracked_stats` that count steps and samples.

    :::MLLOG {"time_ms": 1760032496633, "key": "tracked_stats", "value": {"train_loss": 2.05}, "metadata": {"samples_count": 80, "step": 10, ..}, ..}

Language models and flux print one every few steps, with a loss and no throughput, and another with
throughput per evaluation, which mlperf.py reads. Some count steps from 0.

Source: github.com/mlcommons/training_results_v5.1, custom_callbacks.py of its submissions of
llama2_70b_lora, llama31_8b, llama31_405b and flux1. No extractor was published.
"""

import re

from reperf.logs.clock import Clock
from reperf.logs.events import EVENT, event_of, has_ended, is_number, read_event
from reperf.logs.format import Format, Record, Words

_LOSSES = ("train_loss", "reduced_train_loss")


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event = read_event(match)
    value, metadata = event.get("value"), event.get("metadata")
    if event.get("key") != "tracked_stats" or not isinstance(event.get("time_ms"), int):
        return None
    if not isinstance(value, dict) or not isinstance(metadata, dict):
        return None
    step, samples = metadata.get("step"), metadata.get("samples_count")
    if not any(name in value for name in _LOSSES) or not is_number(step) or not is_number(samples):
        return None
    time = event["time_ms"] / 1000
    return Record(int(step), rank=rank, time=time, tick=0.001, text=match[0])


def _counts(text: bytes) -> dict[str, float]:
    return {"samples": event_of(text)["metadata"]["samples_count"]}


FORMAT = Format(
    name="mlperf-samples",
    system="mlperf",
    marker=b'"samples_count"',
    pattern=EVENT,
    clock=Clock("", float, digits=3),
    read=_read,
    counts=_counts,
    counts_from=0,
    ended=has_ended,
    unit="samples/s",
    words=Words(counts_from="the log's own steps"),
)
