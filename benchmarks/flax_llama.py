"""transformers' Llama in Flax as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It needs transformers 4,
because version 5 has no models in Flax. Version 4 knows only Llama 2's rotations; our recipe gives
it Llama 3's.
"""

import flax
import jax
import numpy as np
import optax
from flax.traverse_util import unflatten_dict
from flax_peer import Model, kernel_of, run
from jax import numpy as jnp
from llama_shared import config_of, theirs_of
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import llama
from transformers import __version__ as version
from transformers.models.llama import modeling_flax_llama


def make(flags, compute: jnp.dtype) -> Model:
    if flags.shape["embeddings"] == 1:
        raise ValueError("embeddings is 1; allowed: 2, as transformers' Llama in Flax ties none")
    cosines, sines = llama.rotations(flags.shape)
    turned = np.concatenate((sines, sines, cosines, cosines), -1)[:, None]
    modeling_flax_llama.create_sinusoidal_positions = lambda *_: jnp.asarray(turned)
    config = config_of(flags.shape)
    config.max_position_embeddings = flags.shape["context"]  # its mask is the square of this
    network = modeling_flax_llama.FlaxLlamaForCausalLMModule(config, compute)
    weights, decayed = {}, {}
    for name, value in initial_weights(llama, flags):
        *path, kind = theirs_of(name).split(".")
        if path[-1] == "embed_tokens":
            kind = "embedding"
        elif value.ndim == 2:
            kind, value = "kernel", kernel_of(value)  # noqa: PLW2901
        weights[(*path, kind)], decayed[(*path, kind)] = value, llama.decays(name)
    batch = [array.astype(np.int32) for array in synthetic_batch(llama, flags, 0)]

    def loss_of(weights, state, _, batch) -> tuple[jax.Array, dict]:
        tokens, following = batch
        places = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
        given = tokens, jnp.ones_like(tokens), places
        logits = network.apply({"params": weights}, *given, return_dict=False)[0]
        losses = optax.softmax_cross_entropy_with_integer_labels(
            logits.astype(jnp.float32), following
        )
        return losses.mean(), state

    return Model(
        loss_of,
        *map(unflatten_dict, (weights, decayed)),
        {},
        batch,
        f"transformers {version}, flax {flax.__version__}",
    )


if __name__ == "__main__":
    run(llama, make)
