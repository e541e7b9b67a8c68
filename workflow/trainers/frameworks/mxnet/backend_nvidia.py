"""How NVIDIA's container trains with MXNet; its reader is DALI. Source: DeepLearningExamples at
e470c215, MxNet/Classification/RN50v1.5, runner.
"""

from nvidia import dali

from trainers.contract import settings
from trainers.frameworks.mxnet import backend

GPU_ENVIRONMENT = {
    "MXNET_UPDATE_ON_KVSTORE": "0",
    "MXNET_EXEC_ENABLE_ADDTO": "1",
    "MXNET_GPU_WORKER_NTHREADS": "2",
    "MXNET_GPU_COPY_NTHREADS": "1",
    "MXNET_OPTIMIZER_AGGREGATION_SIZE": "54",
    "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_FWD": "999",
    "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_BWD": "25",
    "HOROVOD_CYCLE_TIME": "0.1",
    "HOROVOD_FUSION_THRESHOLD": "67108864",
    "HOROVOD_NUM_NCCL_STREAMS": "2",
}
"""MXNet and Horovod read these when they start on a GPU; those already set stay."""


class Backend(backend.Backend):
    gpu_groups = 16

    def __init__(self, flags, place):
        if flags.device == "cuda":
            settings.variables(GPU_ENVIRONMENT)
        super().__init__(flags, place)

    def versions(self):
        return {**super().versions(), "dali": dali.__version__}
