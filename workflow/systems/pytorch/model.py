"""ResNet-50 v1.5, with 25,557,032 parameters.

Source: He et al., Deep Residual Learning for Image Recognition (2015). v1.5 halves the resolution
in a bottleneck's 3x3 convolution, where the paper does so in its first 1x1.
"""

import torch
from torch import nn

MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)


class ResNet50(nn.Module):
    """Takes uint8 images of shape [N, H, W, 3], returns logits of shape [N, classes].

    Images arrive as bytes and are normalised here, on the device: a quarter of the traffic.
    """

    def __init__(self, classes=1000):
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1), persistent=False)
        self.stem = nn.Sequential(*_conv_bn(3, 64, 7, stride=2), nn.ReLU(inplace=True))
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = nn.Sequential(
            _stage(64, 64, blocks=3, stride=1),
            _stage(256, 128, blocks=4, stride=2),
            _stage(512, 256, blocks=6, stride=2),
            _stage(1024, 512, blocks=3, stride=2),
        )
        self.classify = nn.Linear(2048, classes)
        self.apply(_initialise)

    def forward(self, images):
        # [N, H, W, 3] seen as [N, 3, H, W] lies in memory just as channels-last wants it.
        x = (images.permute(0, 3, 1, 2) - self.mean) / self.std
        x = self.stages(self.pool(self.stem(x)))
        return self.classify(x.mean((2, 3)))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; the output has 4 x `width` channels."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            *_conv_bn(channels, width, 1),
            nn.ReLU(inplace=True),
            *_conv_bn(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_conv_bn(width, 4 * width, 1),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(*_conv_bn(channels, 4 * width, 1, stride))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x).add_(self.shortcut(x)))


def _stage(channels, width, blocks, stride):
    first = Bottleneck(channels, width, stride)
    return nn.Sequential(first, *(Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)))


def _conv_bn(channels, out, size, stride=1):
    conv = nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False)
    return conv, nn.BatchNorm2d(out)


def _initialise(module):
    """He initialisation by fan-out; each residual branch starts as zero."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    elif isinstance(module, Bottleneck):
        nn.init.zeros_(module.body[-1].weight)
