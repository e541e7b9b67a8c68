"""NVIDIA DeepLearningExamples' PyTorch ResNet-50 through DLLogger.

    DLL 2020-09-15 14:29:14.427490 - Epoch: 0 Iteration: 2  train.loss : 6.93504  train.total_ips : 4294.91 img/s

Source: github.com/NVIDIA/DeepLearningExamples at 5cc03caa,
PyTorch/Classification/ConvNets/image_classification/logger.py; DLPerf
NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/extract_pytorch_logs_time.py.
"""

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="ngc-pytorch-resnet50",
    system="ngc-pytorch",
    marker=b" train.total_ips : ",
    pattern=r"DLL {DATE} - Epoch: {EPOCH} Iteration: {ITERATION}  train.loss : {NUMBER}  "
    r"train.total_ips : {RATE} img/s",
    facts=facts_by(
        batch_size=r"PARAMETER .* batch_size : (\d{1,9})\s",
        world_size=r"PARAMETER .* world_size : (\d{1,9})\s",
        nodes=r"--nnodes[ =](\d{1,9})\s",
        devices_per_node=r"--nproc_per_node[ =](\d{1,9})\s",
    ),
    unit="images/s",
    published=estimators.between_lines(20, 120, DATE, behind=5),
    notes={"extractor": "20th to 120th line after iteration 5, by time stamps"},
)
