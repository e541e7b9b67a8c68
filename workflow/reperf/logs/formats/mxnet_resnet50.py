"""MXNet's gluon-cv ResNet-50, printed by rank 0 without a time stamp, batches from 0.

    INFO:root:Epoch[0] Batch[1]\\tSpeed: 391.204510 samples/sec\\taccuracy=0.000000\\tlr=0.001000

Source: github.com/dmlc/gluon-cv at f9a8a284, scripts/classification/imagenet/train_horovod.py as
DLPerf changed it; DLPerf MxNet/Classification/RN50v1b/extract_mxnet_logs.py.
"""

from reperf.logs import estimators
from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="mxnet-resnet50",
    system="mxnet",
    marker=b"] Batch[",
    pattern=r"Epoch\[{EPOCH}\] Batch\[{ITERATION}\]\s+Speed: {RATE} samples/sec",
    facts=facts_by(
        batch_size=r"\bNamespace\(.*\bbatch_size=(\d{1,9})\b",
        world_size=r"mpirun .*-np (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
    published=estimators.mean_speed(20, 120, estimators.printed_speed(2), exactly=True),
    notes={"extractor": "arithmetic mean of printed speeds 21 to 120; needs exactly 120 lines"},
)
