"""ResNet-50 v1.5, with 25,557,032 parameters.

Source: He et al., Deep Residual Learning for Image Recognition (2015). v1.5 halves the resolution
in a bottleneck's 3x3 convolution, where the paper does so in its first 1x1.
"""

import resnet50
import torch
from torch import nn


class ResNet50(nn.Module):
    """Takes uint8 images of shape [N, H, W, 3], returns logits of shape [N, classes].

    Images arrive as bytes and are normalised here, on the device: a quarter of the traffic.
    Its parameters lie in the order of resnet50.initial_weights, with which it starts.
    """

    def __init__(self, seed):
        super().__init__()
        self.register_buffer("mean", torch.tensor(resnet50.MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(resnet50.STD).view(3, 1, 1), persistent=False)
        self.stem = nn.Sequential(*_conv_bn(3, 64, 7, stride=2), nn.ReLU(inplace=True))
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(Bottleneck(*shape) for _, *shape in resnet50.BLOCKS))
        self.classify = nn.Linear(resnet50.FEATURES, resnet50.CLASSES)
        start = resnet50.initial_weights(seed).values()
        with torch.no_grad():
            for weight, value in zip(self.parameters(), start, strict=True):
                weight.copy_(torch.from_numpy(value))

    def forward(self, images):
        # [N, H, W, 3] seen as [N, 3, H, W] lies in memory just as channels-last wants it.
        x = (images.permute(0, 3, 1, 2) - self.mean) / self.std
        x = self.blocks(self.pool(self.stem(x)))
        return self.classify(x.mean((2, 3)))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; the output has 4 x `width` channels."""

    def __init__(self, channels, width, stride):
        super().__init__()
        out = resnet50.EXPANSION * width
        self.body = nn.Sequential(
            *_conv_bn(channels, width, 1),
            nn.ReLU(inplace=True),
            *_conv_bn(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_conv_bn(width, out, 1),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(*_conv_bn(channels, out, 1, stride))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x).add_(self.shortcut(x)))


def _conv_bn(channels, out, size, stride=1):
    conv = nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False)
    momentum = 1 - resnet50.BATCH_NORM_MOMENTUM  # torch counts the share of the new average
    return conv, nn.BatchNorm2d(out, eps=resnet50.BATCH_NORM_EPSILON, momentum=momentum)
