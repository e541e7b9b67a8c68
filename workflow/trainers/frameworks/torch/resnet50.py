"""ResNet-50 v1.5 for PyTorch; trainers/recipes/resnet50.py says what it is."""

from functools import partial

from torch import nn

from trainers.frameworks.torch import compiled
from trainers.frameworks.torch.layers import Layered, Normalize
from trainers.recipes import resnet50


class ResNet50(Layered):
    @staticmethod
    def layers(flags):
        norm, stem, pool = COMPILED if flags.compile else USUAL
        norm = partial(norm, eps=resnet50.BATCH_NORM_EPSILON, momentum=NEW_SHARE)
        yield "", Normalize
        yield "stem", lambda: nn.Sequential(stem(3, 64), norm(64), nn.ReLU(inplace=True))
        yield "", pool
        for name, *shape in resnet50.BLOCKS:
            yield name, partial(Bottleneck, norm, *shape)
        yield "", _Mean
        yield "fc", partial(nn.Linear, resnet50.FEATURES, resnet50.CLASSES)

    @staticmethod
    def loss(logits, labels):
        return nn.functional.cross_entropy(logits, labels, label_smoothing=resnet50.LABEL_SMOOTHING)


class _Mean(nn.Module):
    """The average of each feature over the pixels: [N, C, H, W] -> [N, C]."""

    def forward(self, x):
        return x.mean((2, 3))


class Bottleneck(nn.Module):
    def __init__(self, norm, channels, width, stride):
        super().__init__()
        out = resnet50.EXPANSION * width
        self.body = nn.Sequential(
            *(_conv(channels, width, 1), norm(width), nn.ReLU(inplace=True)),
            *(_conv(width, width, 3, stride), norm(width), nn.ReLU(inplace=True)),
            *(_conv(width, out, 1), norm(out)),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(_conv(channels, out, 1, stride), norm(out))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x).add_(self.shortcut(x)))


def _conv(channels, out, size, stride=1):
    return nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False)


NEW_SHARE = 1 - resnet50.BATCH_NORM_MOMENTUM
"""Of a running average: torch counts what it takes of the new one."""
USUAL = (
    nn.BatchNorm2d,
    partial(_conv, size=7, stride=2),
    partial(nn.MaxPool2d, 3, stride=2, padding=1),
)
COMPILED = compiled.BatchNorm2d, compiled.Stem, compiled.MaxPool
