"""Logs of MLPerf's language models since v4.0, and of HPC's DeepCAM: `train_loss` events that count.

    :::MLLOG {"time_ms": 1775725581676, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": 11.846, "metadata": {"samples_count": 80, "lr": 3.125e-06}}

An iteration here is a batch, as DeepCAM's `step_num` counts them, or so many samples divided by the
global batch, which another event says before. Since v5.0 most submissions print other lines: see mlperf_samples.py.

Source: github.com/mlcommons/training, llama2_70b_lora and llama31; lines as in AMD's documentation of
its trainings; github.com/mlcommons/hpc_results_v1.0, deepCam/driver/trainer.py. No extractor was published.
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
    batches: list[int] = []

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        event = event_of(match[0])
        value, metadata, time = event.get("value"), event.get("metadata"), event.get("time_ms")
        if event.get("key") == "global_batch_size" and is_whole(value) and value >= 1:
            batches[:] = [value]
        if event.get("key") != "train_loss" or not isinstance(metadata, dict) or not batches:
            return None
        steps, samples = metadata.get("step_num"), metadata.get("samples_count")
        if samples is not None:
            steps = _quotient(samples, batches[0])
        if not is_whole(steps) or not is_number(time):
            return None
        return Record(steps, rank=rank, time=time / 1000, tick=0.001, text=match[0])

    return read


def _quotient(samples: object, batch: int) -> int | None:
    """How many batches some samples are; None if they are no whole number of batches."""
    return samples // batch if is_whole(samples) and samples % batch == 0 else None


FORMAT = Format(
    name="mlperf-losses",
    system="mlperf",
    marker=MARK,
    pattern=r':::MLLOG \{(?>[^\r\n]{0,300}?"key": ?")(?:global_batch_size|train_loss)"[^\r\n]{0,2000}\}{END}',
    clock=MILLISECONDS,
    remembering=_remembering,
    facts=facts_in,
    counts=samples_counted,
    ended=has_ended,
    counting="the log's own steps, or samples in batches",
)
