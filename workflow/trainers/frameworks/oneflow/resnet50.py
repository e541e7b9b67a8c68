"""ResNet-50 v1.5 for OneFlow, with 25,557,032 parameters.

Source: He et al., Deep Residual Learning for Image Recognition (2015). v1.5 halves the resolution
in a bottleneck's 3x3 convolution, where the paper does so in its first 1x1.
"""

import os

import oneflow as flow
import resnet50
from oneflow import nn

CHANNELS_LAST = os.environ.get("ONEFLOW_ENABLE_NHWC") == "1"  # OneFlow's layers go by it


class ResNet50(nn.Module):
    """Takes normalised images [N, 3, H, W], or [N, H, W, 3] where channels are last.

    It returns logits [N, classes]. Its parameters lie in the order of resnet50.initial_weights,
    with which it starts.

    Args:
        seed: of the initial weights.
        fused: whether batch norm, addition and ReLU are one kernel, which only GPUs have.
    """

    def __init__(self, seed, fused):
        super().__init__()
        norm_relu = nn.FusedBatchNorm2d if fused else NormReLU
        self.conv, self.norm = _conv(3, 64, 7, stride=2), _norm(norm_relu, 64)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        blocks = (Bottleneck(*shape, norm_relu) for _, *shape in resnet50.BLOCKS)
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(resnet50.FEATURES, resnet50.CLASSES)
        start = resnet50.initial_weights(seed)
        self.names = list(start)  # of the parameters, in their order
        with flow.no_grad():
            for weight, value in zip(self.parameters(), start.values(), strict=True):
                last = CHANNELS_LAST and value.ndim == 4
                weight.copy_(flow.tensor(value.transpose(0, 2, 3, 1) if last else value))

    def forward(self, images):
        x = self.blocks(self.pool(self.norm(self.conv(images))))
        return self.classify(x.mean((1, 2) if CHANNELS_LAST else (2, 3)))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; the output has 4 x `width` channels."""

    def __init__(self, channels, width, stride, norm_relu):
        super().__init__()
        out = resnet50.EXPANSION * width
        self.conv1, self.norm1 = _conv(channels, width, 1), _norm(norm_relu, width)
        self.conv2, self.norm2 = _conv(width, width, 3, stride), _norm(norm_relu, width)
        self.conv3, self.norm3 = _conv(width, out, 1), _norm(norm_relu, out)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            norm = _norm(nn.BatchNorm2d, out)
            self.shortcut = nn.Sequential(_conv(channels, out, 1, stride), norm)

    def forward(self, x):
        y = self.norm1(self.conv1(x))
        y = self.norm2(self.conv2(y))
        return self.norm3(self.conv3(y), self.shortcut(x))


class NormReLU(nn.BatchNorm2d):
    """nn.FusedBatchNorm2d for CPUs: batch norm, then what is added to it, then ReLU."""

    def forward(self, x, addend=None):
        y = nn.BatchNorm2d.forward(self, x)  # super() is not to be had: graphs pass a stand-in
        return flow.relu(y if addend is None else y + addend)


def _conv(channels, out, size, stride=1):
    return nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False)


def _norm(kind, channels):
    momentum = 1 - resnet50.BATCH_NORM_MOMENTUM  # OneFlow counts the share of the new average
    return kind(channels, eps=resnet50.BATCH_NORM_EPSILON, momentum=momentum)
