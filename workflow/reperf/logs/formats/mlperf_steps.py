"""Logs of MLPerf's largest language models, v3.0 to v5.0: `tracked_stats` that tell how long a step took.

    :::MLLOG {"time_ms": 1744812678480, "key": "tracked_stats", "value": {"train_step_time": 54.7, "reduced_train_loss": 7.7}, "metadata": {"step": 1152.0, ..}, ..}

What is called `step` there counts samples for llama31_405b and tokens for gpt3: the printed times of a
step decide. Lines that count samples by that name are read by mlperf_samples.py. gpt3 of v3.1 and v4.1
prints no losses; where a log does, a time without one is a mean over the steps before an evaluation.

Source: github.com/mlcommons/training_results_v3.0 to v5.0, custom_callbacks.py of NVIDIA's
submissions. No extractor was published.
"""

import re

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import EVENT_LINE, facts_of, has_ended, is_number, tracked_stats
from reperf.logs.format import Format, Read, Record

_TOOK = ("train_step_time", "train_step_timing", "train_step_timing in s")
_LOSS = "reduced_train_loss"


def _remembering(_format: Format) -> Read:
    losses = False

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal losses
        event, value, metadata = tracked_stats(match)
        took = next((value[name] for name in _TOOK if name in value), None)
        step, time = metadata.get("step"), event.get("time_ms")
        if not (is_number(took) and is_number(step) and is_number(time)):
            return None
        if (
            took <= 0
            or step != int(step)
            or not {"samples_count", "throughput"}.isdisjoint({*metadata, *value})
        ):
            return None
        losses |= _LOSS in value
        if losses and _LOSS not in value:
            return None
        stamp = time / 1000
        return Record(int(step), rank=rank, time=stamp, tick=0.001, rate=1 / took, text=match[0])

    return read


FORMAT = Format(
    name="mlperf-steps",
    system="mlperf",
    marker=b'"train_step_tim',
    pattern=EVENT_LINE,
    clock=MILLISECONDS,
    remembering=_remembering,
    rate_times=("global_batch",),
    step_is=("global_batch", "sample", "token"),
    facts=facts_of({"global_batch_size": "global_batch", "max_sequence_length": "sample_tokens"}),
    ended=has_ended,
    counting="the log's own samples or tokens",
    speed_of="all",
)
