"""NVIDIA's PyTorch BERT on SQuAD through DLLogger: every fiftieth step of an epoch.

    DLL 2021-12-02 07:14:01.141880 - Training Epoch: 0 Training Iteration: 51  step_loss : 5.896368980407715  learning_rate : 0.0

Steps count through all epochs. The last one of an epoch may be a smaller batch: the progress bar tells
which it is, and its line is not taken. The sequences per second at the end are those of as many steps
as the command asks for, though the run may take fewer.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/run_squad.py; logs in
github.com/lambdal/deeplearning-benchmark. No extractor was published.
"""

import re

from reperf.logs.format import Format, Read, Record, facts_by, read_groups


def _remembering(log_format: Format) -> Read:
    steps: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["steps"] is not None:
            steps[rank] = int(match["steps"])
            return None
        record = read_groups(log_format, match, rank)
        is_last = record is not None and steps.get(rank) and record.iteration % steps[rank] == 0
        return None if is_last else record

    return read


FORMAT = Format(
    name="ngc-pytorch-squad",
    system="ngc-pytorch",
    marker=b"Iteration: ",
    signs=(b"  step_loss : ",),
    pattern=r"DLL {DATE} - Training Epoch: {EPOCH} Training Iteration: {ITERATION}  "
    r"step_loss : {NUMBER}{END}"
    r"|(?<!Training )\bIteration: {1,3}\d{1,3}%\|[^|\r\n]{0,1000}\| {0,12}\d{1,12}/"
    r"(?P<steps>\d{1,12}) \[",
    remembering=_remembering,
    # The arguments are printed before the script divides the batch by the accumulation.
    facts=facts_by(
        update_batch=r"\bNamespace\([^\r\n]*[( ]train_batch_size=(\d{1,9})\b",
        accumulation=r"\bgradient_accumulation_steps=(\d{1,9})\b",
        world_size=(
            r"\bn_gpu: (1), distributed training: False\b",
            # Without --nnodes, launchers start one node.
            r"(?: -m torch\.distributed\.launch|^torchrun|\ntorchrun) (?![^\r\n]*--nnodes)"
            r"[^\r\n]*--nproc_per_node[ =](\d{1,9})\s[^\r\n]*run_squad\.py",
        ),
        nodes=r"--nnodes[ =](\d{1,9})\s",
        devices_per_node=r"--nproc_per_node[ =](\d{1,9})\s",
    ),
    accumulates=True,
    unit="sentences/s",
)
