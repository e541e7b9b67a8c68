"""Batches for MXNet, on the device that trains.

Images have the device's layout. Labels and the like are float32, as MXNet's own reader gives them:
on a CPU, AMP accepts no int64.
"""

import mxnet as mx

from trainers.frameworks.mxnet.images import axes_from


def placed(batch, device):
    """A batch of numpy's arrays, or of MXNet's, as a list of arrays on the device."""

    def put(array):
        if isinstance(array, mx.nd.NDArray):
            return array.as_in_context(device)
        if array.ndim == 4:  # of all arrays images alone: [N, H, W, 3]
            array = array.transpose(axes_from("NHWC", device))
        return mx.nd.array(array, device, "float32" if array.dtype == "int64" else array.dtype)

    return list(map(put, batch))
