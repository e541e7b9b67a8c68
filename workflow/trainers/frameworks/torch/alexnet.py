"""AlexNet for PyTorch; trainers/recipes/alexnet.py says what it is."""

from functools import partial

import numpy as np
from torch import nn

from trainers.contract.recipe import dropout_of
from trainers.frameworks.torch.layers import Layered, Normalize
from trainers.recipes import alexnet, plain


class AlexNet(Layered):
    loss = staticmethod(nn.functional.cross_entropy)

    @staticmethod
    def layers(flags):
        yield "", Normalize
        channels = 3
        for number, (width, *convolution) in enumerate(alexnet.CONVOLUTIONS):
            yield f"conv{number + 1}", partial(nn.Conv2d, channels, width, *convolution)
            yield "", partial(nn.ReLU, inplace=True)
            if number in alexnet.POOLED:
                yield "", partial(nn.MaxPool2d, 3, stride=2)
            channels = width
        yield "", nn.Flatten
        inputs = int(np.prod(alexnet.features(flags.shape)))
        for number in (1, 2):
            yield "", partial(nn.Dropout, dropout_of(alexnet, flags))
            yield f"fc{number}", partial(nn.Linear, inputs, plain.HIDDEN)
            yield "", partial(nn.ReLU, inplace=True)
            inputs = plain.HIDDEN
        yield "fc3", partial(nn.Linear, inputs, plain.CLASSES)
