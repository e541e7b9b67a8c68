"""DeepSpeed: the lines of its own timer, where a program prints no others.

    [2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, MaxMemAllocated=38.49GB

An iteration is a step of the optimizer. The second speed is that of the newest one, from its first forward
pass on: it counts no wait for data and no evaluation, so that a window with more of them than a trifle is
refused.

Source: github.com/deepspeedai/DeepSpeed, deepspeed/utils/timer.py; lines as in its issues and in those of
programs that use it. No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="deepspeed",
    system="deepspeed",
    marker=b", CurrSamplesPerSec=",
    pattern=r"\[{DATE}\] \[INFO\] \[timer\.py:\d{1,9}:stop\] "
    r"(?:epoch=\d{1,9}/micro_step=\d{1,12}/global_step=|\d{1,9}/){ITERATION}, "
    r"RunningAvgSamplesPerSec={NUMBER}, CurrSamplesPerSec={RATE}, MemAllocated=",
    evaluates=rb"\*{3,} (?:Running )?[Ee]valuat",
    facts=facts_by(global_batch=r"\btrain_batch_size \.{1,60} (\d{1,9})\s"),
    yields=6,
    notes={"speed_of": "all"},
)
