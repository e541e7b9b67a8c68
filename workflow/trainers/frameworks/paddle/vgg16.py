"""VGG16 for PaddlePaddle; trainers/recipes/vgg16.py says what it is."""

from paddle import nn

from trainers.contract.recipe import dropout_of
from trainers.frameworks.paddle.layers import Normalize
from trainers.recipes import plain, vgg16


class VGG16(nn.Layer):
    def __init__(self, flags, layout):
        super().__init__()
        self.layout = layout
        layers, channels = [Normalize(layout)], 3
        for _, width, *how, pool in vgg16.CONVOLUTIONS:
            layers += [nn.Conv2D(channels, width, *how, data_format=layout), nn.ReLU()]
            if pool:
                layers.append(nn.MaxPool2D(pool, stride=2, data_format=layout))
            channels = width
        self.features = nn.Sequential(*layers)
        dropout = dropout_of(vgg16, flags)
        layers, inputs = [nn.Flatten()], vgg16.features(flags.shape)
        for _ in range(2):
            layers += [nn.Linear(inputs, plain.HIDDEN), nn.ReLU(), nn.Dropout(dropout)]
            inputs = plain.HIDDEN
        self.classify = nn.Sequential(*layers, nn.Linear(inputs, plain.CLASSES))

    def forward(self, images, labels):
        x = self.features(images)
        if self.layout == "NHWC":  # the first linear layer is given channels before rows
            x = x.transpose((0, 3, 1, 2))
        return nn.functional.cross_entropy(self.classify(x), labels)
