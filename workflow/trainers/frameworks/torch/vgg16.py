"""VGG16 for PyTorch; trainers/recipes/vgg16.py says what it is."""

import numpy as np
from torch import nn

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.images import Normalize
from trainers.recipes import plain, vgg16


class VGG16(nn.Module):
    """Takes uint8 images [N, H, W, 3] and labels [N], returns their mean cross-entropy."""

    def __init__(self, flags):
        super().__init__()
        layers, channels = [Normalize()], 3
        for widths in vgg16.CONVOLUTIONS:
            for width in widths:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        dropout = dropout_of(vgg16, flags)
        layers.append(nn.Flatten())
        inputs = int(np.prod(vgg16.features(flags.shape)))
        for _ in range(2):
            layers += [
                nn.Linear(inputs, plain.HIDDEN),
                nn.ReLU(inplace=True),
                nn.Dropout(dropout),
            ]
            inputs = plain.HIDDEN
        self.classify = nn.Sequential(*layers, nn.Linear(inputs, plain.CLASSES))

    def forward(self, images, labels):
        return nn.functional.cross_entropy(self.classify(images), labels)
