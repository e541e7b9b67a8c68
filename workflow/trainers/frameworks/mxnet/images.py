"""What models of images have in common in MXNet."""

import mxnet as mx
from mxnet.gluon import nn

from trainers.inputs import images


def has_nvidias_kernels(device):
    """Whether this is NVIDIA's build of MXNet and a GPU, for which alone it has kernels."""
    return device.device_type == "gpu" and hasattr(mx.nd, "BatchNormAddRelu")


def layout_on(device):
    """The layout of images in memory on a device that trains: "NHWC" or "NCHW"."""
    # NVIDIA's kernels for Tensor Cores want channels last; with that layout, other builds' batch
    # norm is slow, and missing on a CPU.
    return "NHWC" if has_nvidias_kernels(device) else "NCHW"


def axes_from(layout, device):
    """The axes by which to transpose an array from a layout to the device's."""
    return [layout.index(axis) for axis in layout_on(device)]


class Normalize(nn.HybridBlock):
    """Takes uint8 images in the device's layout, returns normalised float32 ones."""

    def __init__(self, device):
        super().__init__()
        shape = [3 if axis == "C" else 1 for axis in layout_on(device)]
        self.mean = self.params.get_constant("mean", mx.nd.array(images.MEAN).reshape(shape))
        self.std = self.params.get_constant("std", mx.nd.array(images.STD).reshape(shape))

    def hybrid_forward(self, F, pixels, mean, std):
        return F.broadcast_div(F.broadcast_sub(F.cast(pixels, "float32"), mean), std)


def rearranged(images, layout):
    """Images on a device, from a reader's layout to the device's."""
    if layout == layout_on(images.context):
        return images
    return mx.nd.transpose(images, axes_from(layout, images.context))
