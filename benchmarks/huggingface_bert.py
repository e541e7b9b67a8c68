"""Hugging Face transformers' BERT as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It says what a trainer of
ours says, by the same step log, and needs torch and transformers.
"""

import torch
from huggingface_shared import config_of, labelled_batch, start_weights
from peer import Model, run
from trainers.contract.recipe import optimizer_of
from trainers.recipes import bert
from transformers import BertForPreTraining
from transformers import __version__ as version


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
    model = BertForPreTraining(config_of(flags))
    theirs = dict(model.named_parameters())
    with torch.no_grad():
        for name, value in start_weights(flags).items():
            theirs.pop(name).copy_(torch.from_numpy(value))
    if theirs:
        raise ValueError(f"weights that ours lacks: {', '.join(theirs)}")
    return model


def make_batch(flags) -> dict[str, torch.Tensor]:
    """Our synthetic batch as transformers takes it."""
    return {name: torch.from_numpy(array) for name, array in labelled_batch(flags).items()}


if __name__ == "__main__":
    run(bert, make)
