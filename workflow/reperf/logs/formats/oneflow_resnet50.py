"""OneFlow-Benchmark's ResNet-50, with or without the time stamp that v0.2.0 added.

    train: epoch 0, iter 20, loss: 7.087004, top_1: 0.000000, top_k: 0.000000, samples/s: 3988.891 1597933942.9863544

Source: github.com/Oneflow-Inc/OneFlow-Benchmark, Classification/cnns/util.py; DLPerf
OneFlow/Classification/ConvNets/resnet50v1.5/extract_cnn_result.py.
"""

from reperf.logs import estimators
from reperf.logs.clock import UNIX
from reperf.logs.format import Format, facts_by

ARGUMENTS = facts_by(
    batch_size=r"\bbatch_size_per_device = (\d{1,9})\s",
    devices_per_node=r"\bgpu_num_per_node = (\d{1,9})\s",
    nodes=r"\bnum_nodes = (\d{1,9})\s",
)
"""The arguments that OneFlow's scripts print before they train."""

FORMAT = Format(
    name="oneflow-resnet50",
    system="oneflow",
    marker=b"train: epoch ",
    pattern=r"train: epoch {EPOCH}, iter {ITERATION}, loss: {NUMBER}, top_1: {NUMBER}, "
    r"top_k: {NUMBER}, samples/s: {RATE}(?: {UNIX})?{END}",
    facts=ARGUMENTS,
    unit="images/s",
    published=estimators.between_iterations(20, 120, UNIX),
    notes={"extractor": "20 to 120, by time stamps"},
)
