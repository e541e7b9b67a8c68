"""Hugging Face transformers' GPT-2 as its users train it, from our start weights, on our batch.

benchmarks/training.py starts it beside our trainer, with the same flags. It prints the same step
log, and needs torch and transformers. Compiled, with --batch-size=12
and --precision=bf16, these are nanoGPT's settings: the recipe's optimizer is nanoGPT's, too.
"""

import torch
from peer import Model, adamw, run
from torch import nn
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import gpt2
from transformers import GPT2Config, GPT2LMHeadModel
from transformers import __version__ as version


def make_model(flags) -> GPT2LMHeadModel:
    """The model of a shape, with its own start weights replaced by ours."""
    shape = flags.shape
    config = GPT2Config(
        vocab_size=shape["vocabulary"],
        n_positions=shape["context"],
        n_embd=shape["hidden"],
        n_layer=shape["layers"],
        n_head=shape["heads"],
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
        attn_implementation="sdpa",
        use_cache=False,
    )
    network = GPT2LMHeadModel(config)
    ours = initial_weights(gpt2, flags)
    with torch.no_grad():  # in our order, linear layers transposed
        for (name, weight), (_, start) in zip(network.named_parameters(), ours, strict=True):
            linear = len(start.shape) == 2 and ".h." in name
            weight.copy_(torch.from_numpy(start.T if linear else start))
    return network


def make(flags, _) -> Model:
    network = make_model(flags).to(flags.device)
    tokens, following = (
        torch.from_numpy(array).to(flags.device) for array in synthetic_batch(gpt2, flags, 0)
    )

    def loss_of(model: nn.Module) -> torch.Tensor:
        logits = model(input_ids=tokens).logits
        return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())

    return Model(
        network, loss_of, adamw(network, gpt2, flags), f"transformers {version}", flags.compile
    )


if __name__ == "__main__":
    run(gpt2, make)
