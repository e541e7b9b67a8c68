"""transformers' BERT in Flax as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It needs the transformers
before 5, which has no models in Flax any more.
"""

import flax
import numpy as np
import optax
from flax.traverse_util import unflatten_dict
from flax_peer import Model, kernel_of, run
from huggingface_shared import UNMASKED, config_of, masked_batch, renamed
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
    batch = {name: one.astype(np.int32) for name, one in masked_batch(flags).items()}

    def logits_of(module, inputs, places, training):
        """Those of masked tokens and of the next sentence; transformers has those of all tokens."""
        length = inputs["input_ids"].shape
        hidden, pooled = module.bert(
            *(inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"]),
            *(jnp.broadcast_to(jnp.arange(length[1]), length), None),
            deterministic=not training,
            return_dict=False,
        )
        embeddings = module.bert.variables["params"]["embeddings"]
        masked = jnp.take_along_axis(hidden, places[..., None], axis=1)
        return module.cls(
            masked, pooled, shared_embedding=embeddings["word_embeddings"]["embedding"]
        )

    def loss_of(weights, state, key, batch):
        words, follows = network.apply(
            {"params": weights},
            *(batch, batch["places"], key is not None),
            rngs=None if key is None else {"dropout": key},
            method=logits_of,
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
