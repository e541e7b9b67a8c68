"""ResNet-50 v1.5 for PaddlePaddle, with 25,557,032 parameters.

Source: He et al., Deep Residual Learning for Image Recognition (2015). v1.5 halves the resolution
in a bottleneck's 3x3 convolution, where the paper does so in its first 1x1.
"""

import paddle
import resnet50
from paddle import nn


class ResNet50(nn.Layer):
    """Takes uint8 images of shape [N, H, W, 3], returns logits of shape [N, classes].

    Images arrive as bytes and are normalised here, on the device: a quarter of the traffic.
    Its weights lie in the order of resnet50.initial_weights, with which it starts.

    Args:
        seed: of the initial weights.
        layout: "NCHW" or "NHWC", in which it computes.
    """

    def __init__(self, seed, layout):
        super().__init__()
        self.layout = layout
        self.register_buffer("mean", paddle.to_tensor(resnet50.MEAN), persistable=False)
        self.register_buffer("std", paddle.to_tensor(resnet50.STD), persistable=False)
        self.stem = nn.Sequential(*_conv_bn(3, 64, 7, 2, layout=layout), nn.ReLU())
        self.pool = nn.MaxPool2D(3, stride=2, padding=1, data_format=layout)
        blocks = (Bottleneck(*shape, layout) for _, *shape in resnet50.BLOCKS)
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(resnet50.FEATURES, resnet50.CLASSES)
        start = resnet50.initial_weights(seed)
        for weight, (name, value) in zip(self.weights(), start.items(), strict=True):
            # Paddle's linear layers have [features, classes].
            weight.set_value(value.T if name == "fc.weight" else value)
            weight.decays = resnet50.decays(name)

    def forward(self, images):
        x = (images.astype("float32") - self.mean) / self.std
        if self.layout == "NCHW":
            x = x.transpose((0, 3, 1, 2))
        x = self.blocks(self.pool(self.stem(x)))
        return self.classify(x.mean((2, 3) if self.layout == "NCHW" else (1, 2)))

    def weights(self):
        """All parameters that are trained; Paddle counts running averages among them, too."""
        return [weight for weight in self.parameters() if not weight.stop_gradient]


class Bottleneck(nn.Layer):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; the output has 4 x `width` channels."""

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
    return (
        nn.Conv2D(
            channels, out, size, stride, padding=size // 2, bias_attr=False, data_format=layout
        ),
        nn.BatchNorm2D(
            out,
            momentum=resnet50.BATCH_NORM_MOMENTUM,
            epsilon=resnet50.BATCH_NORM_EPSILON,
            data_format=layout,
        ),
    )
