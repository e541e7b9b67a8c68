"""ResNet-50 v1.5 for OneFlow; trainers/recipes/resnet50.py says what it is."""

import oneflow as flow
from oneflow import nn

from trainers.contract.precision import halves
from trainers.frameworks.oneflow.inputs import CHANNELS_LAST
from trainers.inputs import images
from trainers.recipes import resnet50


class ResNet50(nn.Module):
    """Takes uint8 images [N, H, W, 3], labels [N] and perhaps which images to mirror, [N]; returns
    each image's smoothed cross-entropy, [N].
    """

    def __init__(self, flags):
        super().__init__()
        # Batch norm, addition and ReLU are one kernel, which only GPUs have, and AMP uses.
        norm_relu = nn.FusedBatchNorm2d if halves(flags) else NormReLU
        self.stem = Stem(norm_relu)
        blocks = (Bottleneck(*shape, norm_relu) for _, *shape in resnet50.BLOCKS)
        self.blocks = nn.Sequential(*blocks)
        self.classify = Classifier()

    def forward(self, pixels, labels, *mirrored):
        return self.losses(self.classify(self.blocks(self.stem(pixels, *mirrored))), labels)

    @staticmethod
    def losses(logits, labels):
        """Each image's smoothed cross-entropy, [N]."""
        return nn.functional.cross_entropy(
            logits, labels, reduction="none", label_smoothing=resnet50.LABEL_SMOOTHING
        )

    def stages(self, cuts):
        """The layers of each stage; the first takes what the model takes, without labels."""
        names = [name for name, *_ in resnet50.BLOCKS]
        begins = [1 + names.index(weight.rsplit(".", 3)[0]) for weight in cuts]
        layers = [self.stem, *self.blocks, self.classify]
        ends = [*begins, len(layers)]
        return [layers[begin:end] for begin, end in zip([0, *begins], ends)]


class Stem(nn.Module):
    """Takes images as ResNet50 does, and returns what the first block takes."""

    def __init__(self, norm_relu):
        super().__init__()
        how = {"mean": images.MEAN, "std": images.STD}
        self.normalize = nn.CropMirrorNormalize(color_space="RGB", **how)
        self.conv, self.norm = _conv(3, 64, 7, stride=2), _norm(norm_relu, 64)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, pixels, *mirrored):
        return self.pool(self.norm(self.conv(self.normalize(pixels, *mirrored))))


class Classifier(nn.Module):
    """Takes what the last block returns, and returns logits."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(resnet50.FEATURES, resnet50.CLASSES)

    def forward(self, x):
        return self.linear(x.mean((1, 2) if CHANNELS_LAST else (2, 3)))


class Bottleneck(nn.Module):
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
    """nn.FusedBatchNorm2d for CPUs: batch norm, then an addition, then ReLU."""

    def forward(self, x, addend=None):
        y = nn.BatchNorm2d.forward(self, x)  # super() is not to be had: graphs pass a stand-in
        return flow.relu(y if addend is None else y + addend)


def _conv(channels, out, size, stride=1):
    return nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False)


def _norm(kind, channels):
    momentum = 1 - resnet50.BATCH_NORM_MOMENTUM  # OneFlow counts the share of the new average
    return kind(channels, eps=resnet50.BATCH_NORM_EPSILON, momentum=momentum)
