"""NVIDIA's PyTorch GNMT, as in MLPerf v0.7: the time of the batch that a line is printed for.

    0: TRAIN [3][1880/1885]\tTime 0.146 (0.143)\tData 2.28e-04 (3.20e-04)\tTok/s 99942 (96504)\tLoss/tok 3.0903 (3.1363)\tLR 7.000e-04

Batches count from 0. By default every tenth is printed, whose time says nothing about those between:
their sentences have other lengths.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/Translation/GNMT/seq2seq/train/trainer.py;
logs in github.com/mlcommons/training_results_v0.7, benchmark gnmt. No extractor was published.
"""

from reperf.logs.averages import durations_since
from reperf.logs.format import Format

FORMAT = Format(
    name="ngc-pytorch-gnmt",
    system="ngc-pytorch",
    marker=b"TRAIN [",
    pattern=r"TRAIN \[{EPOCH}\]\[{ITERATION}/{TOTAL}\]\s+Time {DURATION} \({NUMBER}\)\s+"
    r"Data {NUMBER} \({NUMBER}\)\s+Tok/s {NUMBER} \({NUMBER}\)\s+Loss/tok {NUMBER} ",
    remembering=durations_since(newest=1),
    untimed="its times are those of single batches, and not every batch is printed",
    counts_from=0,
    unit="sentences/s",
    notes={"timing": "the time of each batch"},
)
