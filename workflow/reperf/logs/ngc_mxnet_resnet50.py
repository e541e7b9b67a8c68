"""NVIDIA DeepLearningExamples' MXNet ResNet-50: MXNet's Speedometer over a range of batches.

    [1,0]<stderr>:2020-12-16 08:03:32,459:INFO: Epoch[0] Batch [240-259]\\tSpeed: 388.77939683427064 samples/sec\\tLR: 0.0148

Batches count from 0; every rank prints; the speed is that of all ranks.

Source: github.com/NVIDIA/DeepLearningExamples at e470c215, MxNet/Classification/RN50v1.5/fit.py;
DLPerf NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/extract_mxnet_logs_time.py, whose
results its README shows.
"""

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.format import EPOCH, ITERATION, RATE, Format, facts_by, line, time_by

FORMAT = Format(
    name="ngc-mxnet-resnet50",
    system="ngc-mxnet",
    marker=b"] Batch [",
    pattern=line(
        rf"(?:{time_by(DATE)}:INFO: )?Epoch\[{EPOCH}\] Batch \[\d{{1,12}}-{ITERATION}\]\s+"
        rf"Speed: {RATE} samples/sec"
    ),
    clock=DATE,
    # The argument is the batch of all ranks.
    facts=facts_by(
        {
            r"--batch-size[ =](\d{1,9})\s": "global_batch",
            r"\bNamespace\(.*\bbatch_size=(\d{1,9})\b": "global_batch",
            r"horovodrun .*-np (\d{1,9})\s": "world_size",
        }
    ),
    counts_from=0,
    unit="images/s",
    published=estimators.between_lines(20, 120, DATE, of_all_ranks=True),
)
