"""NVIDIA DeepLearningExamples' MXNet image classification since 2021, through DLLogger.

    DLL 2021-12-17 10:38:27.688385 - Epoch: 0 Iteration: 39  train.loss : 7.077772760391236  train.ips : 384.7673874257311  train.lr : 0.002241916167664671

Since 2023 `images/s` follows the speed. Rank 0 prints it, the speed of all ranks since its previous
line. Batches count from 0, and the argument is the batch of all ranks.

Source: github.com/NVIDIA/DeepLearningExamples, MxNet/Classification/RN50v1.5/fit.py and
log_utils.py; logs in github.com/PaddlePaddle/Perf at e7a07c4, ResNet50V1.5/OtherReports/MxNet/logs.
No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="ngc-mxnet-classification",
    system="ngc-mxnet",
    marker=b" train.ips : ",
    pattern=r"DLL {DATE} - Epoch: {EPOCH} Iteration: {ITERATION}  train.loss : {NUMBER}\s+"
    r"train.ips : {RATE}{END}",
    # kv_store is an argument of the MXNet script alone.
    facts=facts_by(
        global_batch=r"PARAMETER .* kv_store : .* batch_size : (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
)
