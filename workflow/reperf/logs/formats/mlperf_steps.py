"""Logs of MLPerf's largest language models, v3.0 to v5.0: `tracked_stats` that tell how long a step took.

    :::MLLOG {"time_ms": 1744812678480, "key": "tracked_stats", "value": {"train_step_time": 54.7, "reduced_train_loss": 7.7}, "metadata": {"step": 1152.0, ..}, ..}

What is called `step` there counts samples for llama31_405b and tokens for gpt3: the printed times of a
step decide. Lines that count samples by that name are read by mlperf_samples.py.

Source: github.com/mlcommons/training_results_v3.0 and v5.0, custom_callbacks.py of NVIDIA's
submissions. No extractor was published.
"""

import re

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import EVENT_LINE, facts_of, has_ended, is_number, tracked_stats
from reperf.logs.format import Format, Record


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event, value, metadata = tracked_stats(match)
    took = value.get("train_step_time", value.get("train_step_timing"))
    step, time = metadata.get("step"), event.get("time_ms")
    if not (is_number(took) and is_number(step) and is_number(time)) or "samples_count" in metadata:
        return None
    if took <= 0 or step != int(step) or "reduced_train_loss" not in value:
        return None  # without a loss it is a mean over the steps before an evaluation
    return Record(int(step), rank=rank, time=time / 1000, tick=0.001, rate=1 / took, text=match[0])


FORMAT = Format(
    name="mlperf-steps",
    system="mlperf",
    marker=b'"train_step_tim',
    pattern=EVENT_LINE,
    clock=MILLISECONDS,
    read=_read,
    rate_times=("global_batch",),
    step_is=("global_batch", "sample", "token"),
    facts=facts_of({"global_batch_size": "global_batch", "max_sequence_length": "sample_tokens"}),
    ended=has_ended,
    counting="the log's own samples or tokens",
    speed_of="all",
)
