"""VGG16 for PyTorch; trainers/recipes/vgg16.py says what it is."""

from functools import partial

import numpy as np
from torch import nn

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.layers import Layered, Normalize
from trainers.recipes import plain, vgg16


class VGG16(Layered):
    loss = staticmethod(nn.functional.cross_entropy)

    @staticmethod
    def layers(flags):
        yield "", Normalize
        channels = 3
        for group, widths in enumerate(vgg16.CONVOLUTIONS, start=1):
            for number, width in enumerate(widths, start=1):
                yield f"conv{group}.{number}", partial(nn.Conv2d, channels, width, 3, padding=1)
                yield "", partial(nn.ReLU, inplace=True)
                channels = width
            yield "", partial(nn.MaxPool2d, 2)
        yield "", nn.Flatten
        inputs = int(np.prod(vgg16.features(flags.shape)))
        for number in (1, 2):
            yield f"fc{number}", partial(nn.Linear, inputs, plain.HIDDEN)
            yield "", partial(nn.ReLU, inplace=True)
            yield "", partial(nn.Dropout, dropout_of(vgg16, flags))
            inputs = plain.HIDDEN
        yield "fc3", partial(nn.Linear, inputs, plain.CLASSES)
