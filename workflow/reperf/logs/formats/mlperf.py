"""Logs of MLPerf Training submissions: `:::MLLOG` lines whose `tracked_stats` hold a throughput.

    :::MLLOG {"time_ms": 1719843792116, "key": "tracked_stats", "value": {"throughput": 14214.6}, "metadata": {"epoch_num": 799502}, ..}

Submissions count samples, steps or epochs there, under any of four names. Where the name does not say
which, the printed throughput decides, which MXNet's image classification of v2.1 calls `imgs_sec`.

Source: github.com/mlcommons/logging, mlperf_logging/mllog. No extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.clock import Clock
from reperf.logs.events import EVENT, event_of, has_ended, is_count, is_number, read_event
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, Words

_COUNTS = ("samples_count", "step_num", "step", "epoch_num")
_FACTS = {"global_batch_size": "global_batch", "train_samples": "epoch_samples"}


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event = read_event(match)
    value, metadata = event.get("value"), event.get("metadata")
    if event.get("key") != "tracked_stats":
        return None
    if not isinstance(metadata, dict) or not isinstance(value, dict) or "iteration" in value:
        return None  # with an iteration it is ours, see mllog.py
    rate = value.get("throughput", value.get("imgs_sec"))
    count = next((metadata[name] for name in _COUNTS if name in metadata), None)
    if not is_number(rate) or not is_number(event.get("time_ms")) or type(count) is not int:
        return None
    if not is_number(count):
        return None
    # Where a time is told too, both are means since the epoch began, and compare with no stretch.
    averaged = "time" in value and "step" in metadata
    return Record(
        iteration=count,
        rank=rank,
        time=event["time_ms"] / 1000,
        tick=0.001,
        rate=None if averaged else rate,
        text=match[0],
    )


def _counts(text: bytes) -> dict[str, float]:
    metadata = event_of(text).get("metadata", {})
    return {"samples": metadata["samples_count"]} if "samples_count" in metadata else {}


def _facts(head: bytes) -> Iterator[Fact]:
    for match in EVENT.finditer(head):
        event = read_event(match)
        name, value = _FACTS.get(str(event.get("key"))), event.get("value")
        if name and is_count(value):
            yield name, value


FORMAT = Format(
    name="mlperf",
    system="mlperf",
    marker=b'"tracked_stats"',
    pattern=EVENT,
    clock=Clock("", float, digits=3),
    read=_read,
    runs_ahead=True,  # as MXNet's image classification on hundreds of nodes
    step_is=("global_batch", "sample", "epoch_samples", "epoch_batches"),
    facts=_facts,
    counts=_counts,
    ended=has_ended,
    yields=1,
    unit="samples/s",
    words=Words(
        counts_from="the log's own counts",
        speed="all",
    ),
)
