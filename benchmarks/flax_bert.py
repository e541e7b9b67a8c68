"""transformers' BERT in Flax as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It needs the transformers
before 5, which has no models in Flax any more.
"""

import flax
import numpy as np
import optax
from flax.traverse_util import unflatten_dict
from flax_peer import Model, kernel_of, run
from huggingface_shared import UNMASKED, config_of, labelled_batch, renamed
from jax import numpy as jnp
from trainers.contract.weights import initial_weights
from trainers.recipes import bert
from transformers import __version__ as version
from transformers.models.bert.modeling_flax_bert import FlaxBertForPreTrainingModule


def make(flags, compute: jnp.dtype) -> Model:
    network = FlaxBertForPreTrainingModule(config_of(flags), compute)
    weights, decayed = {}, {}
    for name, value in initial_weights(bert, flags):
        for target, part in renamed(name, value):
            path, turned = in_flax(target, part)
            weights[path], decayed[path] = turned, bert.decays(name)
    batch = {name: one.astype(np.int32) for name, one in labelled_batch(flags).items()}

    def loss_of(weights, state, key, batch):
        places = jnp.broadcast_to(jnp.arange(batch["labels"].shape[1]), batch["labels"].shape)
        words, follows = network.apply(
            {"params": weights},
            *(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"], places, None),
            deterministic=key is None,
            return_dict=False,
            rngs=None if key is None else {"dropout": key},
        )
        cross_entropy = optax.softmax_cross_entropy_with_integer_labels
        counted = batch["labels"] != UNMASKED
        losses = cross_entropy(words.astype(jnp.float32), jnp.where(counted, batch["labels"], 0))
        both = cross_entropy(follows.astype(jnp.float32), batch["next_sentence_label"])
        return (losses * counted).sum() / counted.sum() + both.mean(), state

    return Model(
        loss_of,
        *map(unflatten_dict, (weights, decayed, {})),
        batch,
        f"transformers {version}, flax {flax.__version__}",
    )


def in_flax(name: str, value: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The path of a weight, and how it lies, in Flax, by its name in PyTorch."""
    *path, kind = name.split(".")
    if kind == "bias":
        return (*path, kind), value
    if path[-1].endswith("embeddings"):
        return (*path, "embedding"), value
    return (*path, "scale" if value.ndim == 1 else "kernel"), kernel_of(value)


if __name__ == "__main__":
    run(bert, make)
