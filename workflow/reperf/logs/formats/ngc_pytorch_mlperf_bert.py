"""NVIDIA's PyTorch BERT of MLPerf: a dictionary with a time stamp every so many steps.

    0: {'training_steps': 41724, 'average_loss': 1.42399, 'step_loss': 1.27441, 'learning_rate': 0.0002, 'seq/s': 373.4911217136396, 'global_steps': 6943, 'samples_trained': 1999584, 'skipped_steps': 11, 'timestamp': 1593158087.1865}

Training steps count batches; the iteration is the global step, one of the optimizer, which holds all
that it accumulates, as the global batch of the MLLOG lines does. A step that loss scaling skips is
none. Since v1.0 most submissions print no such lines.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/bert/implementations/pytorch/run_pretraining.py. No extractor was published.
"""

from reperf.logs.format import SKIPPED, Format, Prints, counts_by

FORMAT = Format(
    name="ngc-pytorch-mlperf-bert",
    system="ngc-pytorch",
    marker=b"'samples_trained': ",
    pattern=r"\{'training_steps': \d{1,12}, 'average_loss': {NUMBER}, 'step_loss': {NUMBER}, "
    r"'learning_rate': {NUMBER}, 'seq/s': {RATE}, 'global_steps': {ITERATION}, "
    r"'samples_trained': \d{1,15}, 'skipped_steps': \d{1,12}, 'timestamp': "
    r"{UNIX}(?:, 'mlm_accuracy': {NUMBER})?\}",
    evaluates=rb"\{'global_steps': \d{1,12}, 'eval_loss': ",
    counts=counts_by(
        {r"'samples_trained': (\d{1,15}),": "samples", r"'skipped_steps': (\d{1,12}),": SKIPPED}
    ),
    yields=2,
    unit="sentences/s",
    prints=Prints.REPEATS,
)
