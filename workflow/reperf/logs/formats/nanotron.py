"""nanotron: lines with time stamps, in whole seconds, of steps of the optimizer.

    10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | consumed_tokens: 85.8G | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | hardware_tflops_per_gpu: 38.3 | grad_norm: 1.25
    12/21 01:39:51 [INFO|DP=0|TP=0|lrdn0007]: iteration: 211364 / 1500000 | consumed_tokens: 480B | time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 699 | global_batch_size: 1.6M | ..

All that a line says is rounded to three digits. The line that the training starts with says its batch
and the length of a sequence whole:

    [Start training] datetime: 2024-08-31 14:37:26.889276 | mbs: 2 | grad_accum: 1 | global_batch_size: 2 | sequence_length: 256 | train_steps: 15 | start_iteration_step: 0 | consumed_train_samples: 0

Source: github.com/huggingface/nanotron, src/nanotron/trainer.py and src/nanotron/logging/base.py; lines
as in its issue 390 and in public documentation of trainings. No extractor was published.
"""

from datetime import UTC, datetime

from reperf.logs.clock import Clock
from reperf.logs.format import Format, facts_by


def _seconds(stamp: str) -> float:
    # Without a year, any leap year will do: across New Year, time steps back, and is refused.
    day, time = stamp.split(" ")
    written = stamp if day.count("/") == 2 else f"{day}/2000 {time}"
    return datetime.strptime(written, "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp()


FORMAT = Format(
    name="nanotron",
    system="nanotron",
    marker=b" | consumed_tokens: ",
    pattern=r"\b(?P<time>\d\d/\d\d(?:/\d{4})? \d\d:\d\d:\d\d) \[INFO[^\]\r\n]{0,120}\]: "
    r"iteration: {ITERATION} / {TOTAL} \| consumed_tokens: {NUMBER} \| "
    r"(?:elapsed_)?time_per_iteration_ms: {NUMBER} \|(?:[^\r\n]{0,200}? lm_loss: {NUMBER} \|)?",
    clock=Clock(r"\d\d/\d\d(?:/\d{4})? \d\d:\d\d:\d\d", _seconds),
    facts=facts_by(
        global_batch=r"\[Start training\] [^\r\n]{1,120}\| global_batch_size: (\d{1,9}) \|",
        sample_tokens=r"\[Start training\] [^\r\n]{1,160}\| sequence_length: (\d{1,9}) \|",
    ),
    accumulates=True,
    notes={"timing": "time stamps, in whole seconds: the window must be 100 s or longer"},
)
