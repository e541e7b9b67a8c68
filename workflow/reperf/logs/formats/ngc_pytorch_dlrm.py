"""NVIDIA's PyTorch DLRM of MLPerf and DeepLearningExamples: the mean time of a step since a line.

    Epoch:[0/1] [1184/75869]  eta: 0:04:18  loss: 0.1346  step_time: 3.4589 ms  lr: 10.341818

A line follows each of a fixed number of steps. After an evaluation between two lines the time holds
fewer steps than it is divided by: windows that hold one are refused.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/dlrm/implementations/pytorch/scripts/dist_train.py. No extractor was published.
"""

from reperf.logs.averages import durations_since
from reperf.logs.format import Format, Prints

FORMAT = Format(
    name="ngc-pytorch-dlrm",
    system="ngc-pytorch",
    marker=b"  step_time: ",
    # What is between is of this iteration: a line that broke off may go on with another one's.
    pattern=r"Epoch:\[{EPOCH}/\d{1,9}\] \[ *{ITERATION}/{TOTAL}\]  eta: (?:(?!Epoch:)[^\r\n]){1,40}?  "
    r"loss: {NUMBER}  step_time: {MILLISECONDS} ms",
    remembering=durations_since(),
    counts_from=0,
    prints=Prints.EVENLY,
    notes={"timing": "the mean time of a step since the previous line"},
)
