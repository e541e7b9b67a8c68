"""Logs of MLPerf's DLRM since v1.0: `tracked_stats` that count parts of an epoch.

    :::MLLOG {"time_ms": 1714376016697, "key": "tracked_stats", "value": {"throughput": 13612968.8}, "metadata": {"step": 0.7998919189655854, ..}, ..}

One line follows each evaluation, or the last one; an iteration here is a line. Whole counts are read
by mlperf.py, and the lines of HugeCTR, where a log holds them, by hugectr_wide_deep.py.

Source: github.com/mlcommons/training_results_v4.0 at 5e1d3b3, NVIDIA's mlperf_logger/callbacks.py. No
extractor was published.
"""

import re

from reperf.logs.events import EVENT_LINE, is_number, tracked_stats
from reperf.logs.format import Format, Read, Record


def _remembering(_format: Format) -> Read:
    lines: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        _, value, metadata = tracked_stats(match)
        if type(metadata.get("step")) is not float or not is_number(value.get("throughput")):
            return None
        lines[rank] = lines.get(rank, 0) + 1
        return Record(lines[rank], rank=rank, rate=value["throughput"], text=match[0])

    return read


FORMAT = Format(
    name="mlperf-epochs",
    system="mlperf",
    marker=b'"tracked_stats"',
    pattern=EVENT_LINE,
    remembering=_remembering,
    untimed="its lines count parts of an epoch, and evaluations lie between them",
    yields=3,
    counting="1: an iteration is a line",
    speed_of="all",
)
