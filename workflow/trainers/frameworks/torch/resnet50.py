"""ResNet-50 v1.5 for PyTorch; trainers/recipes/resnet50.py says what it is."""

from functools import partial

from torch import nn

from trainers.frameworks.torch.images import Normalize
from trainers.frameworks.torch.layers import Layered
from trainers.recipes import resnet50


class ResNet50(Layered):
    """Takes uint8 images [N, H, W, 3] and labels [N], returns their mean smoothed cross-entropy."""

    @staticmethod
    def layers(flags):
        yield "", Normalize
        yield "stem", _stem
        yield "", partial(nn.MaxPool2d, 3, stride=2, padding=1)
        for name, *shape in resnet50.BLOCKS:
            yield name, partial(Bottleneck, *shape)
        yield "", _Mean
        yield "fc", partial(nn.Linear, resnet50.FEATURES, resnet50.CLASSES)

    @staticmethod
    def loss(logits, labels):
        return nn.functional.cross_entropy(logits, labels, label_smoothing=resnet50.LABEL_SMOOTHING)


def _stem():
    return nn.Sequential(*_conv_bn(3, 64, 7, stride=2), nn.ReLU(inplace=True))


class _Mean(nn.Module):
    """The average of each feature over the pixels: [N, C, H, W] -> [N, C]."""

    def forward(self, x):
        return x.mean((2, 3))


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
