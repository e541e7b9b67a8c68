"""ResNet-50 v1.5 for JAX; trainers/recipes/resnet50.py says what it is."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from trainers.frameworks.jax.layers import convolution, cross_entropy, largest, linear, normalized
from trainers.recipes import resnet50

NORM = ".bn."
AVERAGES = {"mean": 0.0, "variance": 1.0}
"""What a batch norm keeps running averages of, and where they start."""


class ResNet50:
    def __init__(self, flags, compute):
        self._sizes, self._compute = resnet50.weight_shapes(flags.shape), compute

    def start_state(self):
        return {
            name[: -len("bias")] + kind: np.full(size, start, np.float32)
            for name, size in self._sizes.items()
            if name.endswith(NORM + "bias")
            for kind, start in AVERAGES.items()
        }

    def __call__(self, weights, state, key, images, labels):
        state = dict(state)

        def conv_bn(x, name, stride=1):
            kernel = weights[name + ".conv.weight"]
            x = convolution(x, kernel, stride, padding=len(kernel) // 2)
            return batch_norm(x, weights, state, name + NORM)

        x = jax.nn.relu(conv_bn(normalized(images, self._compute), "stem", 2))
        x = largest(x, 3, stride=2, padding=1)
        for name, _, _, stride in resnet50.BLOCKS:
            y = jax.nn.relu(conv_bn(x, name + ".1"))
            y = jax.nn.relu(conv_bn(y, name + ".2", stride))
            y = conv_bn(y, name + ".3")
            if name + ".shortcut.conv.weight" in weights:
                x = conv_bn(x, name + ".shortcut", stride)
            x = jax.nn.relu(x + y)
        logits = linear(x.mean((1, 2)), weights["fc.weight"], weights["fc.bias"])
        return cross_entropy(logits, labels, resnet50.LABEL_SMOOTHING).mean(), state


def batch_norm(x, weights, state, name):
    """Features [N, H, W, C] as one batch, in float32; `state` has running averages, which go on."""
    whole = x.astype(jnp.float32)
    # In one pass over the features, as flax has it: features after a convolution are around zero.
    mean, square = whole.mean((0, 1, 2)), jnp.square(whole).mean((0, 1, 2))
    found = {"mean": mean, "variance": square - jnp.square(mean)}
    kept = resnet50.BATCH_NORM_MOMENTUM
    for kind, value in found.items():
        state[name + kind] = kept * state[name + kind] + (1 - kept) * lax.stop_gradient(value)
    scale = weights[name + "weight"] * lax.rsqrt(found["variance"] + resnet50.BATCH_NORM_EPSILON)
    return ((whole - mean) * scale + weights[name + "bias"]).astype(x.dtype)
