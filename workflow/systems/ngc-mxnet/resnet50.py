"""Train as NVIDIA's MXNet container does: the training of `mxnet`, DALI, and settings for GPUs."""

import ctypes

import mxnet as mx
from dali_input import build_pipeline
from gluon_training import run, synthetic_batches
from mxnet.base import _LIB, check_call
from nvidia import dali

# Source: NVIDIA's DeepLearningExamples at e470c215, MxNet/Classification/RN50v1.5, runner.
GPU_SETTINGS = {
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
GPU_GROUPS = 16


def input_batches(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, H, W, 3] and float32 labels [N], on the device."""
    if flags.input == "synthetic":
        return synthetic_batches(flags, rank, device, "NHWC")
    gpu = device.device_id if device.device_type == "gpu" else None
    return decoded(build_pipeline(flags, rank, world_size, gpu), device)


def decoded(pipeline, device):
    while True:
        images, labels = pipeline.run()
        labels = copied(labels, device, "int64").astype("float32").reshape(-1)
        yield copied(images, device, "uint8"), labels


def copied(batch, device, dtype):
    """A batch of DALI's as an array of MXNet's; DALI fills its own memory again at its next run."""
    array = mx.nd.empty(batch.as_tensor().shape(), device, dtype)
    address = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    batch.copy_to_external(address)
    return array


if __name__ == "__main__":
    run(input_batches, "NHWC", {"dali": dali.__version__}, GPU_SETTINGS, GPU_GROUPS)
