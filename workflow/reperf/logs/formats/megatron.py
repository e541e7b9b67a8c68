"""Megatron-LM, Megatron-DeepSpeed and their kin: the mean time of an iteration since the last line.

    [2025-05-27 15:23:07] iteration        1/    24000 | consumed samples:          1024 | elapsed time per iteration (ms): 271607.0 | learning rate: 1.500000E-06 | global batch size:  1024 | lm loss: 1.192634E+01 | ..

The time stamp, whole seconds, came in 2023. An iteration is a step of the optimizer: its global
batch holds all that it accumulates, and every line says it; the samples consumed tell whether it
grew. A mean of all lines may follow the elapsed time, after a slash.

Source: github.com/NVIDIA/Megatron-LM, megatron/training/training.py; lines as in OpenSeek's
documentation, github.com/FlagAI-Open/OpenSeek. No extractor was published.
"""

from reperf.logs.averages import durations_since
from reperf.logs.format import Format, Prints, counts_by, facts_by

FORMAT = Format(
    name="megatron",
    system="megatron",
    marker=b"elapsed time per iteration (ms): ",
    # What is between is of this iteration: a line that broke off may go on with another one's.
    pattern=r"\biteration +{ITERATION}/ *{TOTAL} \|(?:(?!iteration +\d)[^\r\n]){0,200}?"
    r"elapsed time per iteration \(ms\): *{MILLISECONDS}(?:/{NUMBER})? \|[^\r\n]{0,400}?"
    r"glo(?:ba|ab)l batch size: +\d{1,9} \|(?:[^\r\n]{0,400}?loss: {NUMBER} \|)?",
    # In older versions the time goes on.
    evaluates=rb"\bvalidation loss at iteration \d",
    remembering=durations_since(),
    facts=facts_by(
        print_every=r"\blog_interval \.{1,60} (\d{1,9})\s",
        sample_tokens=r"\bseq_length \.{1,60} (\d{1,9})\s",
    ),
    # One fork misspells it.
    tells=facts_by(
        global_batch=r"glo(?:ba|ab)l batch size: +(\d{1,9})\s",
    ),
    counts=counts_by({r"consumed samples: +(\d{1,15}) \|": "samples"}),
    prints=Prints.EVENLY,
    notes={"timing": "the mean time of an iteration since the previous line"},
)
