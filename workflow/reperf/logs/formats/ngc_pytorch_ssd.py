"""NVIDIA's PyTorch SSD of MLPerf until v1.1: speeds, but no times.

    Iteration:   3080, Loss function: 4.149, Average Loss: 4.224, avg. samples / sec: 4880.87

Rank 0 prints the speed of all ranks since its previous line. Iterations count from 0.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/ssd/implementations/pytorch/train.py. No extractor was published.
"""

from reperf.logs.format import Format

FORMAT = Format(
    name="ngc-pytorch-ssd",
    system="ngc-pytorch",
    marker=b", avg. samples / sec: ",
    pattern=r"\bIteration: +{ITERATION}, Loss function: {NUMBER}, Average Loss: {NUMBER}, "
    r"avg\. samples / sec: {RATE}(?=\s)",
    counts_from=0,
    unit="images/s",
)
