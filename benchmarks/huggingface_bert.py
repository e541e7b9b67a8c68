"""Hugging Face transformers' BERT as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It says what a trainer of
ours says, by the same step log, and needs torch and transformers.
"""

import numpy as np
import torch
from peer import Model, run
from trainers.contract.recipe import dropout_of, optimizer_of
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import bert
from transformers import BertConfig, BertForPreTraining
from transformers import __version__ as version

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


def make(flags, _) -> Model:
    network = make_model(flags).to(flags.device)
    asked = optimizer_of(bert, flags)
    weights = list(network.parameters())
    groups = [
        {"params": [one for one in weights if one.dim() == 2], "weight_decay": asked.weight_decay},
        {"params": [one for one in weights if one.dim() != 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        groups,
        lr=bert.learning_rate(flags.batch_size),
        betas=(asked.beta1, asked.beta2),
        eps=asked.epsilon,
        fused=True,
    )
    batch = {name: array.to(flags.device) for name, array in make_batch(flags).items()}
    name = f"transformers {version}"
    return Model(network, lambda model: model(**batch).loss, optimizer, name, flags.compile)


def make_model(flags) -> BertForPreTraining:
    """The model of a shape, with its own start weights replaced by ours."""
    shape, dropout = flags.shape, dropout_of(bert, flags)
    model = BertForPreTraining(
        BertConfig(
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
    )
    theirs = dict(model.named_parameters())
    with torch.no_grad():
        for name, value in initial_weights(bert, flags):
            for target, part in renamed(name, value):
                theirs.pop(target).copy_(torch.from_numpy(part))
    if theirs:
        raise ValueError(f"weights that ours lacks: {', '.join(theirs)}")
    return model


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


def make_batch(flags) -> dict[str, torch.Tensor]:
    """Our synthetic batch as transformers takes it: a label for each token, -100 for most."""
    arrays = map(torch.from_numpy, synthetic_batch(bert, flags, 0))
    tokens, real, segments, positions, masked, weights, following = arrays
    labels = torch.full_like(tokens, -100)
    rows, columns = weights.nonzero(as_tuple=True)
    labels[rows, positions[rows, columns]] = masked[rows, columns]
    return {
        "input_ids": tokens,
        "attention_mask": real,
        "token_type_ids": segments,
        "labels": labels,
        "next_sentence_label": following,
    }


if __name__ == "__main__":
    run(bert, make)
