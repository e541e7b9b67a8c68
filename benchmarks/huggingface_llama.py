"""Hugging Face transformers' Llama as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It says what a trainer of
ours says, by the same step log, and needs torch and transformers.
"""

import torch
from llama_shared import config_of, theirs_of
from peer import Model, adamw, run
from torch import nn
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import llama
from transformers import LlamaForCausalLM
from transformers import __version__ as version


def make_model(flags) -> tuple[LlamaForCausalLM, dict[str, nn.Parameter]]:
    """The model of a shape from our start weights, and its weights by our names, in our order."""
    model = LlamaForCausalLM(config_of(flags.shape))
    theirs, named = dict(model.named_parameters()), {}
    with torch.no_grad():
        for name, value in initial_weights(llama, flags):
            named[name] = theirs.pop(theirs_of(name))
            named[name].copy_(torch.from_numpy(value))
    if theirs:
        raise ValueError(f"weights that ours lacks: {', '.join(theirs)}")
    return model, named


def make(flags, _) -> Model:
    network, _ = make_model(flags)
    network.to(flags.device)
    tokens, following = (
        torch.from_numpy(array).to(flags.device) for array in synthetic_batch(llama, flags, 0)
    )

    def loss_of(model: nn.Module) -> torch.Tensor:
        logits = model(input_ids=tokens).logits.flatten(0, 1)
        return nn.functional.cross_entropy(logits.float(), following.flatten())

    return Model(
        network, loss_of, adamw(network, llama, flags), f"transformers {version}", flags.compile
    )


if __name__ == "__main__":
    run(llama, make)
