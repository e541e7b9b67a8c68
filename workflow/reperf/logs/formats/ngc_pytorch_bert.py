"""NVIDIA DeepLearningExamples' PyTorch BERT pretraining through DLLogger: no speed is printed.

    DLL 2020-09-17 03:24:01.456123 - Training Epoch: 0 Training Iteration: 30  average_loss : 10.9  step_loss : 10.8  learning_rate : 0.0006

Since 2021 the line also counts the steps that loss scaling has skipped: `skipped_steps : 8`.

Source: github.com/NVIDIA/DeepLearningExamples at 26c26761, PyTorch/LanguageModeling/BERT/utils.py;
DLPerf NVIDIADeepLearningExamples/PyTorch/BERT/extract_pytorch_logs_time.py with its README's flags.
"""

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.format import SKIPPED, Format, Prints, counts_by, facts_by

FORMAT = Format(
    name="ngc-pytorch-bert",
    system="ngc-pytorch",
    marker=b" Training Iteration: ",
    pattern=r"DLL {DATE} - Training Epoch: \d{1,12} Training Iteration: {ITERATION}  "
    r"average_loss : {NUMBER}{END}(?:[^\r\n]{0,200} skipped_steps : \d{1,12}{END})?",
    # Steps are optimizer steps. What the command calls train_batch_size is the batch of one step;
    # the script divides it by the accumulation before it prints its arguments.
    facts=facts_by(
        batch_size=(
            r"\bNamespace\([^\r\n]*[( ]train_batch_size=(\d{1,9})\b",
            r"PARAMETER batch_size_per_gpu : (\d{1,9})\s",
        ),
        update_batch=r"--train_batch_size[ =](\d{1,9})\s",
        accumulation=r"\bgradient_accumulation_steps[ =](\d{1,9})\b",
        nodes=r"--nnodes[ =](\d{1,9})\s",
        devices_per_node=r"--nproc_per_node[ =](\d{1,9})\s",
    ),
    counts=counts_by({r"skipped_steps : (\d{1,12})$": SKIPPED}),
    accumulates=True,
    unit="sentences/s",
    published=estimators.between_lines(20, 120, DATE, behind=5),
    prints=Prints.REPEATS,
    notes={"extractor": "20th to 120th line after iteration 5, by time stamps"},
)
