"""Images for MXNet that NVIDIA DALI reads and decodes."""

import ctypes

import mxnet as mx
from mxnet.base import _LIB, check_call

from trainers.frameworks.mxnet.images import rearranged
from trainers.inputs.dali import build_pipeline


def dali_images(flags, rank, world_size, device):
    gpu = device.device_id if device.device_type == "gpu" else None
    return _decoded(build_pipeline(flags, rank, world_size, gpu), device)


def _decoded(pipeline, device):
    while True:
        images, labels = pipeline.run()
        labels = _copied(labels, device, "int64").astype("float32").reshape(-1)
        yield rearranged(_copied(images, device, "uint8"), "NHWC"), labels


def _copied(batch, device, dtype):
    """DALI's batch, copied to an array of MXNet's, for DALI's next run reuses its memory."""
    array = mx.nd.empty(batch.as_tensor().shape(), device, dtype)
    address = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    batch.copy_to_external(address)
    return array
