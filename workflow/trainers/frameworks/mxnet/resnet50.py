"""ResNet-50 v1.5 in MXNet's Gluon; trainers/recipes/resnet50.py says what it is.

If the build has such kernels, a batch norm and what follows it are one: oneDNN's on a CPU, NVIDIA's
container's on a GPU.
"""

import mxnet as mx
from mxnet.gluon import nn

from trainers.frameworks.mxnet.images import Normalize, axes_from, has_nvidias_kernels, layout_on
from trainers.recipes import resnet50

ONEDNN = any(
    name in ("MKLDNN", "ONEDNN") and feature.enabled
    for name, feature in mx.runtime.Features().items()
)


class ResNet50(nn.HybridBlock):
    """Takes uint8 images in the device's layout and labels [N], returns their mean loss, [1]."""

    def __init__(self, flags, device):
        super().__init__()
        self._filter_axes = axes_from("NCHW", device)
        layers = Layers(device)
        self.body = nn.HybridSequential()
        self.body.add(Normalize(device))
        self.body.add(layers.conv(3, 64, 7, stride=2), layers.norm_relu(64))
        self.body.add(nn.MaxPool2D(3, strides=2, padding=1, layout=layers.layout))
        for _, *shape in resnet50.BLOCKS:
            self.body.add(Bottleneck(layers, *shape))
        self.body.add(nn.GlobalAvgPool2D(layout=layers.layout))
        self.classify = nn.Dense(resnet50.CLASSES, in_units=resnet50.FEATURES)

    def arranged(self, name, start):
        """The recipe's array of a weight as this model has it: filters in the device's layout."""
        return start.transpose(self._filter_axes) if start.ndim == 4 else start

    def hybrid_forward(self, F, images, labels):
        log_chances = F.log_softmax(self.classify(self.body(images)))
        of_labels = F.mean(F.pick(log_chances, labels))
        of_all = F.mean(log_chances)
        return (resnet50.LABEL_SMOOTHING - 1) * of_labels - resnet50.LABEL_SMOOTHING * of_all


class Bottleneck(nn.HybridBlock):
    def __init__(self, layers, channels, width, stride):
        super().__init__()
        out = resnet50.EXPANSION * width
        self.body = nn.HybridSequential()
        self.body.add(layers.conv(channels, width, 1), layers.norm_relu(width))
        self.body.add(layers.conv(width, width, 3, stride), layers.norm_relu(width))
        self.body.add(layers.conv(width, out, 1))
        self.norm_add_relu = layers.norm_add_relu(out)
        self.shortcut = nn.HybridSequential()
        if stride != 1 or channels != out:
            self.shortcut.add(layers.conv(channels, out, 1, stride), layers.norm(out))

    def hybrid_forward(self, F, x):
        return self.norm_add_relu(self.body(x), self.shortcut(x))


class NormAddReLU(nn.BatchNorm):
    """Batch norm, to which a shortcut of the same shape is added before a ReLU."""

    def hybrid_forward(self, F, x, shortcut, **weights):
        return F.relu(super().hybrid_forward(F, x, **weights) + shortcut)


class NvidiaNormAddReLU(nn.BatchNorm):
    """The same in one kernel of NVIDIA's build."""

    def hybrid_forward(self, F, x, shortcut, **weights):
        averages = {f"moving_{one}": weights.pop(f"running_{one}") for one in ("mean", "var")}
        settings = {name: value for name, value in self._kwargs.items() if name != "act_type"}
        return F.BatchNormAddRelu(x, shortcut, **weights, **averages, **settings)


class Layers:
    """Makes layers for one device."""

    def __init__(self, device):
        self._on_cpu = device.device_type == "cpu"
        self._nvidia = has_nvidias_kernels(device)
        self.layout = layout_on(device)
        self._settings = {
            "axis": self.layout.index("C"),
            "epsilon": resnet50.BATCH_NORM_EPSILON,
            "momentum": resnet50.BATCH_NORM_MOMENTUM,
        }

    def conv(self, channels, out, size, stride=1):
        """A convolution without a bias, which keeps the image's size at a stride of 1."""
        how = {"layout": self.layout, "use_bias": False, "in_channels": channels}
        return nn.Conv2D(out, size, stride, size // 2, **how)

    def norm(self, channels):
        return nn.BatchNorm(in_channels=channels, **self._settings)

    def norm_relu(self, channels):
        if self._on_cpu and ONEDNN:
            return nn.BatchNormReLU(in_channels=channels, **self._settings)
        if self._nvidia:
            return nn.BatchNorm(in_channels=channels, act_type="relu", **self._settings)
        both = nn.HybridSequential()
        both.add(self.norm(channels), nn.Activation("relu"))
        return both

    def norm_add_relu(self, channels):
        """Batch norm, to which a shortcut of the same shape is added before a ReLU."""
        kind = NvidiaNormAddReLU if self._nvidia else NormAddReLU
        return kind(in_channels=channels, **self._settings)
