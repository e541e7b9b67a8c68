"""AlexNet for PyTorch; trainers/recipes/alexnet.py says what it is."""

import numpy as np
from torch import nn

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.images import Normalize
from trainers.recipes import alexnet, plain


class AlexNet(nn.Module):
    """Takes uint8 images [N, H, W, 3] and labels [N], returns their mean cross-entropy."""

    def __init__(self, flags):
        super().__init__()
        layers, channels = [Normalize()], 3
        for number, (width, size, stride, padding) in enumerate(alexnet.CONVOLUTIONS):
            layers += [nn.Conv2d(channels, width, size, stride, padding), nn.ReLU(inplace=True)]
            if number in alexnet.POOLED:
                layers.append(nn.MaxPool2d(3, stride=2))
            channels = width
        dropout = dropout_of(alexnet, flags)
        layers.append(nn.Flatten())
        inputs = int(np.prod(alexnet.features(flags.shape)))
        for _ in range(2):
            layers += [
                nn.Dropout(dropout),
                nn.Linear(inputs, plain.HIDDEN),
                nn.ReLU(inplace=True),
            ]
            inputs = plain.HIDDEN
        self.classify = nn.Sequential(*layers, nn.Linear(inputs, plain.CLASSES))

    def forward(self, images, labels):
        return nn.functional.cross_entropy(self.classify(images), labels)
