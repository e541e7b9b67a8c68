"""Batches for MXNet, on the device that trains.

Images have the device's layout. Labels and the like are float32, as MXNet's own reader gives them:
on a CPU, AMP accepts no int64.
"""

import itertools

import mxnet as mx

from trainers.frameworks.mxnet.images import axes_from


def again_and_again(batch, device):
    """One batch of numpy's arrays, endlessly: a list of arrays on the device."""
    axes = axes_from("NHWC", device)
    # Of all arrays images alone have four dimensions: [N, H, W, 3].
    arranged = [array.transpose(axes) if array.ndim == 4 else array for array in batch]
    return itertools.repeat(next(on_device([arranged], device)))


def on_device(batches, device):
    """Batches of numpy's arrays, or of MXNet's, as lists of arrays on the device."""

    def placed(array):
        if isinstance(array, mx.nd.NDArray):
            return array.as_in_context(device)
        return mx.nd.array(array, device, "float32" if array.dtype == "int64" else array.dtype)

    for batch in batches:
        yield [placed(array) for array in batch]
