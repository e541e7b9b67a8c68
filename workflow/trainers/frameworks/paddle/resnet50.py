"""ResNet-50 v1.5 for PaddlePaddle; trainers/recipes/resnet50.py says what it is."""

from paddle import nn

from trainers.frameworks.paddle.layers import Normalize
from trainers.recipes import resnet50


class ResNet50(nn.Layer):
    def __init__(self, flags, layout):
        super().__init__()
        self.normalize = Normalize(layout)
        self.stem = nn.Sequential(*_conv_bn(3, 64, 7, 2, layout=layout), nn.ReLU())
        self.pool = nn.MaxPool2D(3, stride=2, padding=1, data_format=layout)
        blocks = (Bottleneck(*shape, layout) for _, *shape in resnet50.BLOCKS)
        self.blocks = nn.Sequential(*blocks)
        self.pixels = (2, 3) if layout == "NCHW" else (1, 2)
        self.classify = nn.Linear(resnet50.FEATURES, resnet50.CLASSES)

    def forward(self, images, labels):
        x = self.blocks(self.pool(self.stem(self.normalize(images))))
        logits = self.classify(x.mean(self.pixels))
        return nn.functional.cross_entropy(logits, labels, label_smoothing=resnet50.LABEL_SMOOTHING)


class Bottleneck(nn.Layer):
    def __init__(self, channels, width, stride, layout):
        super().__init__()
        out = resnet50.EXPANSION * width
        self.body = nn.Sequential(
            *_conv_bn(channels, width, 1, layout=layout),
            nn.ReLU(),
            *_conv_bn(width, width, 3, stride, layout=layout),
            nn.ReLU(),
            *_conv_bn(width, out, 1, layout=layout),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(*_conv_bn(channels, out, 1, stride, layout=layout))
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def _conv_bn(channels, out, size, stride=1, *, layout):
    shape, laid = (channels, out, size, stride, size // 2), {"data_format": layout}
    norm = resnet50.BATCH_NORM_MOMENTUM, resnet50.BATCH_NORM_EPSILON
    return nn.Conv2D(*shape, bias_attr=False, **laid), nn.BatchNorm2D(out, *norm, **laid)
