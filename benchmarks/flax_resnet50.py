"""ResNet-50 in Flax, of flax.linen's layers as its users put them together, from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. Ours takes bytes and
normalises them in every step; this one is given what is normalised already.
"""

from functools import partial

import flax
import jax
import numpy as np
import optax
from flax import linen as nn
from flax.traverse_util import unflatten_dict
from flax_peer import Model, kernel_of, run
from jax import numpy as jnp
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.inputs import images
from trainers.recipes import resnet50


class ResNet50(nn.Module):
    """Takes normalised images [N, H, W, 3], returns logits [N, classes]."""

    compute: jnp.dtype

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        norm = partial(
            nn.BatchNorm,
            use_running_average=False,
            momentum=resnet50.BATCH_NORM_MOMENTUM,
            epsilon=resnet50.BATCH_NORM_EPSILON,
            dtype=self.compute,
        )

        def conv_bn(
            x: jax.Array, name: str, features: int, size: int, stride: int = 1
        ) -> jax.Array:
            # Explicitly padded: SAME pads images of even sizes on one side alone.
            convolution = nn.Conv(
                features, (size, size), stride, size // 2, use_bias=False, dtype=self.compute,
                name=f"{name}.conv",
            )  # fmt: skip
            return norm(name=f"{name}.bn")(convolution(x))

        x = nn.relu(conv_bn(x, "stem", 64, 7, 2))
        x = nn.max_pool(x, (3, 3), (2, 2), [(1, 1), (1, 1)])
        for name, channels, width, stride in resnet50.BLOCKS:
            outputs = resnet50.EXPANSION * width
            y = nn.relu(conv_bn(x, f"{name}.1", width, 1))
            y = nn.relu(conv_bn(y, f"{name}.2", width, 3, stride))
            y = conv_bn(y, f"{name}.3", outputs, 1)
            if channels != outputs:
                x = conv_bn(x, f"{name}.shortcut", outputs, 1, stride)
            x = nn.relu(x + y)
        return nn.Dense(images.CLASSES, dtype=self.compute, name="fc")(x.mean((1, 2)))


def make(flags, compute: jnp.dtype) -> Model:
    network, smoothing = ResNet50(compute), resnet50.LABEL_SMOOTHING
    pixels, labels = synthetic_batch(resnet50, flags, 0)
    normal = (pixels - np.float32(images.MEAN)) / np.float32(images.STD)
    weights, decayed = {}, {}
    for name, value in initial_weights(resnet50, flags):
        layer, _, kind = name.rpartition(".")
        if kind == "weight":
            kind = "scale" if value.ndim == 1 else "kernel"
        weights[layer, kind] = kernel_of(value)
        decayed[layer, kind] = resnet50.decays(name)
    averages = {
        (layer, kind): np.full_like(value, kind == "var")
        for (layer, of), value in weights.items()
        if of == "scale"
        for kind in ("mean", "var")
    }

    def loss_of(weights, state, _, batch):
        pixels, labels = batch
        both = {"params": weights, "batch_stats": state}
        logits, after = network.apply(both, pixels, mutable=["batch_stats"])
        wanted = optax.smooth_labels(jax.nn.one_hot(labels, images.CLASSES), smoothing)
        losses = optax.softmax_cross_entropy(logits.astype(jnp.float32), wanted)
        return losses.mean(), after["batch_stats"]

    return Model(
        loss_of,
        *map(unflatten_dict, (weights, decayed, averages)),
        (normal.astype(compute), labels.astype(np.int32)),
        f"flax {flax.__version__}",
    )


if __name__ == "__main__":
    run(resnet50, make)
