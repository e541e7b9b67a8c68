"""NVIDIA NeMo 2's lines, and those of what is built on it: every step of the optimizer, timed.

    Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: 45 | reduced_train_loss: 11.96 | train_step_timing in s: 6.08 | consumed_samples: 5888

Steps count from 0; global_step goes on where an epoch begins again. The samples consumed are those
of all ranks. Times have four digits, of which zeros at the end are left out.

Source: github.com/NVIDIA/NeMo, nemo/lightning/pytorch/callbacks/progress_printer.py; lines as in
the documentation of github.com/aws-samples/awsome-distributed-training, ESM2. No extractor was
published.
"""

import re
from math import floor, log10

from reperf.logs.facts import LARGEST_FACT
from reperf.logs.format import Format, Record, counts_by, facts_by

_DIGITS = 4


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    seconds = float(match["duration"])
    if not 0 < seconds < LARGEST_FACT:
        return None
    return Record(
        iteration=int(match["iteration"]),
        rank=rank,
        duration=seconds,
        tick=10.0 ** (floor(log10(seconds)) + 1 - _DIGITS),
        text=match[0],
    )


FORMAT = Format(
    name="nemo",
    system="nemo",
    marker=b"train_step_timing in s: ",
    pattern=r"\bTraining epoch \d{1,9}, iteration \d{1,12}/\d{1,12} \|[^\r\n]{0,200}?"
    r"\bglobal_step: {ITERATION} \|[^\r\n]{0,400}?\btrain_step_timing in s: {DURATION}{END}"
    r"(?:[^\r\n]{0,200}?consumed_samples: \d{1,15}\s)?",
    read=_read,
    tells=facts_by(
        global_batch=r"global_batch_size: (\d{1,9}) ",
    ),
    counts=counts_by({r"consumed_samples: (\d{1,15})\s": "samples"}),
    counts_from=0,
    notes={"timing": "the time of each step"},
)
