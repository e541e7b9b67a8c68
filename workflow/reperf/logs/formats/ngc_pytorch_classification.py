"""NVIDIA DeepLearningExamples' PyTorch image classification since 2021, through DLLogger.

    DLL 2021-12-20 03:31:31.158022 - Epoch: 0 Iteration: 2  train.loss : 5.82441  train.compute_ips : 5895.91 img/s train.total_ips : 5872.80 img/s train.lr : 0.1

Since 2022 the unit is `images/s`, and `None` stands where a loss has none. compute_ips leaves out the
time of the input; total_ips is that of all ranks. An iteration is a batch, also where gradients of
several are accumulated.

Source: github.com/NVIDIA/DeepLearningExamples,
PyTorch/Classification/ConvNets/image_classification/logger.py; logs in
github.com/PaddlePaddle/Perf at e7a07c4, ResNet50V1.5/OtherReports/PyTorch/logs. No extractor was
published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="ngc-pytorch-classification",
    system="ngc-pytorch",
    marker=b" train.compute_ips : ",
    pattern=r"DLL {DATE} - Epoch: {EPOCH} Iteration: {ITERATION}  train.loss : {NUMBER}"
    r"(?: None)?\s{1,2}train.compute_ips : {NUMBER} (?:img|images)/s "
    r"train.total_ips : {RATE} (?:img|images)/s",
    facts=facts_by(
        batch_size=r"PARAMETER .* batch_size : (\d{1,9})\s",
        world_size=r"PARAMETER .* world_size : (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
)
