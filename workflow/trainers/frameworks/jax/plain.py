"""VGG16 and AlexNet for JAX, as the recipe of the flags says."""

import jax

from trainers.contract.recipe import dropout_of, recipe_named
from trainers.frameworks.jax import layers


class Plain:
    def __init__(self, flags, compute):
        self._recipe, self._compute = recipe_named(flags.recipe), compute
        self._dropout = dropout_of(self._recipe, flags)

    def __call__(self, weights, state, key, images, labels):
        x, drops_first = layers.normalized(images, self._compute), self._recipe.DROPS_FIRST
        for name, _, _, stride, padding, pool in self._recipe.CONVOLUTIONS:
            x = layers.convolution(x, weights[name + ".weight"], stride, padding)
            x = jax.nn.relu(x + weights[name + ".bias"].astype(x.dtype))
            if pool:
                x = layers.largest(x, pool, stride=2)
        # Channels before rows.
        x = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
        for number in (1, 2):
            if drops_first:
                x = layers.dropped(x, self._dropout, key, number)
            x = jax.nn.relu(_linear(x, weights, f"fc{number}"))
            if not drops_first:
                x = layers.dropped(x, self._dropout, key, number)
        return layers.cross_entropy(_linear(x, weights, "fc3"), labels).mean(), state


def _linear(x, weights, name):
    return layers.linear(x, weights[name + ".weight"], weights[name + ".bias"])
