"""Logs of MLPerf Training submissions: `:::MLLOG` lines whose `tracked_stats` hold a throughput.

    :::MLLOG {"time_ms": 1719843792116, "key": "tracked_stats", "value": {"throughput": 14214.6}, "metadata": {"epoch_num": 799502}, ..}

Submissions count samples, steps or epochs there, under any of four names. Where the name does not say
which, the printed throughput decides, which MXNet's image classification of v2.1 calls `imgs_sec`.

Source: github.com/mlcommons/logging, mlperf_logging/mllog. No extractor was published.
"""

import re
from collections.abc import Iterable

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import (
    EVENT_LINE,
    facts_of,
    has_ended,
    is_number,
    is_whole,
    samples_counted,
    tracked_stats,
)
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, facts_by, marked

_IMAGES = 1_170_301
"""What RetinaNet is trained on, MLPerf's ssd since v2.0: its part of OpenImages.

Source: github.com/mlcommons/training, single_stage_detector/README.md, "The MLPerf Subset".
"""
_RETINANET = re.compile(rb'"submission_benchmark", ?"value": ?"(?:ssd|retinanet)"')
_COUNTS = ("samples_count", "step_num", "step", "epoch_num")


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event, value, metadata = tracked_stats(match)
    if "iteration" in value:
        return None  # it is ours, see mllog.py
    rate = value.get("throughput", value.get("imgs_sec"))
    count = next((metadata[name] for name in _COUNTS if name in metadata), None)
    if not is_number(rate) or not is_number(event.get("time_ms")) or not is_whole(count):
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


_said = facts_of(
    {
        "global_batch_size": "global_batch",
        "samples_per_epoch": "epoch_trained",
        "train_samples": "epoch_samples",
    }
)
_devices = facts_by(world_size=r"[( ]world_size=(\d{1,6})[,)]")


@marked(*_said.marks, *_devices.marks, b'"submission_benchmark"')
def facts_of_epochs(head: bytes) -> Iterable[Fact]:
    """What an epoch and a batch hold, and how many devices there are.

    Where RetinaNet's `train_samples` are its images only if they are counted in batches, within a
    batch or two that fill the last one up, they are batches.
    """
    yield from _devices(head)
    told = list(_said(head))
    batches = {value for name, value in told if name == "global_batch"}
    retinanet = _RETINANET.search(head)
    for name, value in told:
        trained = {value * batch for batch in batches if abs(value * batch - _IMAGES) <= 2 * batch}
        if name == "epoch_samples" and retinanet and trained:
            yield from (("epoch_trained", samples) for samples in sorted(trained))
        else:
            yield name, value


FORMAT = Format(
    name="mlperf",
    system="mlperf",
    marker=b'"tracked_stats"',
    pattern=EVENT_LINE,
    clock=MILLISECONDS,
    read=_read,
    runs_ahead=True,  # as MXNet's image classification on hundreds of nodes
    step_is=("global_batch", "sample", "epoch_trained", "epoch_samples", "epoch_batches"),
    facts=facts_of_epochs,
    counts=samples_counted,
    ended=has_ended,
    yields=1,
    counting="the log's own counts",
    speed_of="all",
)
