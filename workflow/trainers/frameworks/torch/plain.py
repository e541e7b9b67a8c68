"""VGG16 and AlexNet for PyTorch, as the recipe of the flags says."""

from functools import partial

from torch import nn

from trainers.contract.recipe import dropout_of, recipe_named
from trainers.frameworks.torch.layers import Layered, Normalize
from trainers.recipes import plain


class Plain(Layered):
    loss = staticmethod(nn.functional.cross_entropy)

    @staticmethod
    def layers(flags):
        recipe, channels = recipe_named(flags.recipe), 3
        yield "", Normalize
        for name, width, *how, pool in recipe.CONVOLUTIONS:
            yield name, partial(nn.Conv2d, channels, width, *how)
            yield "", partial(nn.ReLU, inplace=True)
            if pool:
                yield "", partial(nn.MaxPool2d, pool, stride=2)
            channels = width
        yield "", nn.Flatten
        inputs = recipe.features(flags.shape)
        for number in (1, 2):
            dropout = "", partial(nn.Dropout, dropout_of(recipe, flags))
            layer = f"fc{number}", partial(nn.Linear, inputs, plain.HIDDEN)
            rest = layer, ("", partial(nn.ReLU, inplace=True))
            yield from (dropout, *rest) if recipe.DROPS_FIRST else (*rest, dropout)
            inputs = plain.HIDDEN
        yield "fc3", partial(nn.Linear, inputs, plain.CLASSES)
