"""What transformers' BERT has in common in PyTorch and in Flax: its settings, names and batches."""

import numpy as np
from trainers.contract.recipe import dropout_of
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import bert
from transformers import BertConfig

UNMASKED = -100
"""The label of a place that holds no masked token."""
LAYER = {
    "attention.out": "attention.output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "ffn.in": "intermediate.dense",
    "ffn.out": "output.dense",
    "ffn.norm": "output.LayerNorm",
}
OTHERS = {
    "embeddings.word": "bert.embeddings.word_embeddings",
    "embeddings.position": "bert.embeddings.position_embeddings",
    "embeddings.segment": "bert.embeddings.token_type_embeddings",
    "embeddings.norm": "bert.embeddings.LayerNorm",
    "pooler": "bert.pooler.dense",
    "mlm.transform": "cls.predictions.transform.dense",
    "mlm.norm": "cls.predictions.transform.LayerNorm",
    "mlm": "cls.predictions",
    "nsp": "cls.seq_relationship",
}


def config_of(flags) -> BertConfig:
    """The model of a shape."""
    shape, dropout = flags.shape, dropout_of(bert, flags)
    return BertConfig(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["hidden"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["intermediate"],
        max_position_embeddings=shape["positions"],
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        layer_norm_eps=bert.NORM_EPSILON,
    )


def start_weights(flags) -> dict[str, np.ndarray]:
    """Our start weights, by the names that transformers has in PyTorch."""
    starts = initial_weights(bert, flags)
    return {target: part for name, value in starts for target, part in renamed(name, value)}


def renamed(name: str, value: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """A weight of ours, by the names under which transformers has it or its parts."""
    stem, _, kind = name.rpartition(".")
    if not stem.startswith("layer"):
        return [(f"{OTHERS[stem]}.{kind}", value)]
    layer, _, part = stem.removeprefix("layer").partition(".")
    place = f"bert.encoder.layer.{layer}"
    if part == "attention.qkv":
        parts = zip(("query", "key", "value"), np.split(value, 3), strict=True)
        return [(f"{place}.attention.self.{one}.{kind}", array) for one, array in parts]
    return [(f"{place}.{LAYER[part]}.{kind}", value)]


def masked_batch(flags) -> dict[str, np.ndarray]:
    """Our synthetic batch by transformers' names, with the places of the masked tokens.

    Returns:
        input_ids, attention_mask, token_type_ids: [N, S] each; next_sentence_label: [N]; places and
        labels: [N, M], with UNMASKED as the label of a place that holds none.
    """
    tokens, real, segments, places, masked, weights, following = synthetic_batch(bert, flags, 0)
    return {
        "input_ids": tokens,
        "attention_mask": real,
        "token_type_ids": segments,
        "places": places,
        "labels": np.where(weights > 0, masked, UNMASKED),
        "next_sentence_label": following,
    }
