"""Logs of MLPerf Training submissions: `:::MLLOG` lines whose `tracked_stats` hold a throughput.

    :::MLLOG {"time_ms": 1719843792116, "key": "tracked_stats", "value": {"throughput": 14214.6}, "metadata": {"epoch_num": 799502}, ..}

Submissions count samples, steps or epochs there, under any of four names. Where the name does not say
which, the printed throughput decides, which MXNet's image classification of v2.1 calls `imgs_sec`.

Source: github.com/mlcommons/logging, mlperf_logging/mllog. No extractor was published.
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

_COUNTS = ("samples_count", "step_num", "step", "epoch_num")


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event, value, metadata = tracked_stats(match)
    if "iteration" in value:
        return None  # it is ours, see mllog.py
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


FORMAT = Format(
    name="mlperf",
    system="mlperf",
    marker=b'"tracked_stats"',
    pattern=EVENT_LINE,
    clock=MILLISECONDS,
    read=_read,
    runs_ahead=True,  # as MXNet's image classification on hundreds of nodes
    step_is=("global_batch", "sample", "epoch_trained", "epoch_samples", "epoch_batches"),
    facts=facts_of(
        {
            "global_batch_size": "global_batch",
            "samples_per_epoch": "epoch_trained",
            "train_samples": "epoch_samples",
        }
    ),
    counts=samples_counted,
    ended=has_ended,
    yields=1,
    counting="the log's own counts",
    speed_of="all",
)
