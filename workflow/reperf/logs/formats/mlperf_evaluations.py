"""Logs of MLPerf's BERT by tinygrad, which stamp nothing but evaluations while they train.

    :::MLLOG {"time_ms": 1745545498684, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.41, "metadata": {"epoch_num": 299904, ..}}

Such a line stands behind an evaluation, whose start says both `step_num` and `epoch_num`. An iteration
here is a step. What is called an epoch counts samples: it is read where it is as many steps of the
global batch, which another event says before.

Source: github.com/mlcommons/training_results_v5.0, tinycorp's bert. No extractor was published.
"""

import re

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import MARK, event_of, facts_in, has_ended, is_number
from reperf.logs.format import Format, Read, Record


def _remembering(_format: Format) -> Read:
    batch: object = None
    started: dict[tuple[int, ...], tuple[int, int]] = {}  # of each rank, samples and steps

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal batch
        event = event_of(match[0])
        key, metadata, time = event.get("key"), event.get("metadata"), event.get("time_ms")
        if key == "global_batch_size":
            batch = event.get("value")
            started.clear()  # a run begins
        if key not in ("eval_start", "eval_accuracy") or not isinstance(metadata, dict):
            return None
        samples, step = metadata.get("epoch_num"), metadata.get("step_num")
        if key == "eval_start":
            started.pop(rank, None)
            if type(samples) is type(step) is type(batch) is int and samples == step * batch > 0:
                started[rank] = samples, step
            return None
        begun, step = started.pop(rank, (None, 0))
        if samples != begun or not is_number(samples) or not is_number(time):
            return None
        return Record(step, rank=rank, time=time / 1000, tick=0.001, text=match[0])

    return read


FORMAT = Format(
    name="mlperf-evaluations",
    system="mlperf",
    marker=MARK,
    pattern=r':::MLLOG \{[^\r\n]{0,300}?"key": ?"(?:global_batch_size|eval_start|eval_accuracy)"'
    r"[^\r\n]{0,2000}\}{END}",
    clock=MILLISECONDS,
    remembering=_remembering,
    facts=facts_in,
    counts=lambda record: {"samples": event_of(record)["metadata"]["epoch_num"]},
    ended=has_ended,
    yields=5,
    counting="the log's own steps, at evaluations",
)
