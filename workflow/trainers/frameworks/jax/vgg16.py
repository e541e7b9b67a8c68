"""VGG16 for JAX; trainers/recipes/vgg16.py says what it is."""

from trainers.contract.recipe import dropout_of
from trainers.frameworks.jax.layers import dropped, largest, normalized
from trainers.frameworks.jax.plain import convolved, flattened, hidden, loss_of
from trainers.recipes import vgg16


class VGG16:
    def __init__(self, flags, compute):
        self._compute, self._dropout = compute, dropout_of(vgg16, flags)

    def __call__(self, weights, state, key, images, labels):
        x = normalized(images, self._compute)
        for group, widths in enumerate(vgg16.CONVOLUTIONS, start=1):
            for number in range(1, len(widths) + 1):
                x = convolved(x, weights, f"conv{group}.{number}", padding=1)
            x = largest(x, 2, stride=2)
        x = flattened(x)
        for number in (1, 2):
            x = dropped(hidden(x, weights, f"fc{number}"), self._dropout, key, number)
        return loss_of(x, labels, weights), state
