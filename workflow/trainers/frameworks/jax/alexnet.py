"""AlexNet for JAX; trainers/recipes/alexnet.py says what it is."""

from trainers.contract.recipe import dropout_of
from trainers.frameworks.jax.layers import dropped, largest, normalized
from trainers.frameworks.jax.plain import convolved, flattened, hidden, loss_of
from trainers.recipes import alexnet


class AlexNet:
    def __init__(self, flags, compute):
        self._compute, self._dropout = compute, dropout_of(alexnet, flags)

    def __call__(self, weights, state, key, images, labels):
        x = normalized(images, self._compute)
        for number, (_, _, stride, padding) in enumerate(alexnet.CONVOLUTIONS):
            x = convolved(x, weights, f"conv{number + 1}", stride, padding)
            if number in alexnet.POOLED:
                x = largest(x, 3, stride=2)
        x = flattened(x)
        for number in (1, 2):
            x = hidden(dropped(x, self._dropout, key, number), weights, f"fc{number}")
        return loss_of(x, labels, weights), state
