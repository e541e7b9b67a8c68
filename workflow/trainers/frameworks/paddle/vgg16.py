"""VGG16 for PaddlePaddle; trainers/recipes/vgg16.py says what it is."""

import numpy as np
from paddle import nn

from trainers.contract.recipe import dropout_of
from trainers.frameworks.paddle.layers import Normalize
from trainers.recipes import plain, vgg16


class VGG16(nn.Layer):
    def __init__(self, flags, layout):
        super().__init__()
        self.layout = layout
        layers, channels = [Normalize(layout)], 3
        for widths in vgg16.CONVOLUTIONS:
            for width in widths:
                layers.append(nn.Conv2D(channels, width, 3, padding=1, data_format=layout))
                layers.append(nn.ReLU())
                channels = width
            layers.append(nn.MaxPool2D(2, data_format=layout))
        self.features = nn.Sequential(*layers)
        dropout = dropout_of(vgg16, flags)
        layers, inputs = [nn.Flatten()], int(np.prod(vgg16.features(flags.shape)))
        for _ in range(2):
            layers += [nn.Linear(inputs, plain.HIDDEN), nn.ReLU(), nn.Dropout(dropout)]
            inputs = plain.HIDDEN
        self.classify = nn.Sequential(*layers, nn.Linear(inputs, plain.CLASSES))

    def forward(self, images, labels):
        x = self.features(images)
        if self.layout == "NHWC":  # the first linear layer is given channels before rows
            x = x.transpose((0, 3, 1, 2))
        return nn.functional.cross_entropy(self.classify(x), labels)
