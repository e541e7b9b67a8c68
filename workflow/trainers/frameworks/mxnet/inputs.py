"""Batches for MXNet, on the device that trains.

Images have the device's layout. Labels and the like are float32, as MXNet's own reader gives them:
on a CPU, AMP accepts no int64.
"""

import itertools

import mxnet as mx

from trainers.contract.weights import synthetic_batch
from trainers.frameworks.mxnet.images import axes_from


def synthetic_batches(recipe, flags, rank, device):
    """The rank's synthetic batch, again and again: a list of arrays on the device."""

    def placed(array):
        if array.ndim == 4:  # images, [N, H, W, 3]
            array = array.transpose(axes_from("NHWC", device))
        return mx.nd.array(array, device, "float32" if array.dtype == "int64" else array.dtype)

    return itertools.repeat([placed(array) for array in synthetic_batch(recipe, flags, rank)])
