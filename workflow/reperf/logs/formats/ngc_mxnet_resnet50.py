"""NVIDIA's MXNet ResNet-50: MXNet's Speedometer over a range of batches.

    [1,0]<stderr>:2020-12-16 08:03:32,459:INFO: Epoch[0] Batch [240-259]\\tSpeed: 388.77939683427064 samples/sec\\tLR: 0.0148
    2020-07-10 18:52:44,594 Node[0] Epoch[0] Batch [0-20]\\tSpeed: 20461.75 samples/sec\\taccuracy=0.001284
    [2020-06-22 19:16:26] Epoch[0] Batch [0-50]\\tSpeed: 788.08 samples/sec\\taccuracy=0.001225

The first is DeepLearningExamples', where every rank prints; the others are of MLPerf submissions, the
last one Intel's. Older versions of MXNet print the end of the range alone. Batches count from 0, and
the speed is that of all ranks.

Source: github.com/NVIDIA/DeepLearningExamples at e470c215, MxNet/Classification/RN50v1.5/fit.py;
github.com/mlcommons/training_results_v0.7 at c6640611, results of Alibaba and Intel;
github.com/apache/mxnet, python/mxnet/callback.py; DLPerf
NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/extract_mxnet_logs_time.py, whose results its
README shows.
"""

from collections.abc import Iterator

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.events import MARK
from reperf.logs.facts import Fact
from reperf.logs.format import Format, facts_by, marked

_ARGUMENTS = facts_by(
    global_batch=(
        r"--batch-size[ =](\d{1,9})\s",
        r"\bNamespace\(.*\bbatch_size=(\d{1,9})\b",
    ),
    world_size=r"horovodrun .*-np (\d{1,9})\s",
)


@marked(*_ARGUMENTS.marks, b" Node[", MARK)
def _facts(head: bytes) -> Iterator[Fact]:
    """The arguments, whose batch is that of all ranks, but in MLPerf's version that of one."""
    of_rank = b" Node[" in head or MARK in head
    for name, value in _ARGUMENTS(head):
        yield "batch_size" if of_rank and name == "global_batch" else name, value


FORMAT = Format(
    name="ngc-mxnet-resnet50",
    system="ngc-mxnet",
    marker=b"] Batch [",
    pattern=r"(?:\[?{DATE}(?::INFO:|\]| Node\[{RANK}\]) )?Epoch\[{EPOCH}\] Batch \[(?:\d{1,12}-)?{ITERATION}\]\s+"
    r"Speed: {RATE} samples/sec",
    facts=_facts,
    counts_from=0,
    unit="images/s",
    published=estimators.between_lines(20, 120, DATE, of_all_ranks=True),
    notes={"extractor": "lines 20 to 120 times the number of ranks, by time stamps"},
)
