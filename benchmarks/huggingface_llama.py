"""Hugging Face transformers' Llama as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It says what a trainer of
ours says, by the same step log, and needs torch and transformers.
"""

import torch
from peer import Model, run
from torch import nn
from trainers.contract.recipe import optimizer_of
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import llama
from transformers import LlamaConfig, LlamaForCausalLM
from transformers import __version__ as version

ALONE = {
    "embeddings.token.weight": "model.embed_tokens.weight",
    "last.norm.weight": "model.norm.weight",
    "logits.weight": "lm_head.weight",
}
PARTS = {
    "attention.norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.out": "self_attn.o_proj",
    "ffn.norm": "post_attention_layernorm",
    "ffn.gate": "mlp.gate_proj",
    "ffn.in": "mlp.up_proj",
    "ffn.out": "mlp.down_proj",
}
"""What transformers calls what ours calls by these names."""


def config_of(shape: dict[str, int]) -> LlamaConfig:
    rope = {"rope_type": "default", "rope_theta": llama.THETA}
    if shape["stretch"] > 1:
        rope |= {
            "rope_type": "llama3",
            "factor": float(shape["stretch"]),
            "low_freq_factor": llama.SLOW,
            "high_freq_factor": llama.FAST,
            "original_max_position_embeddings": llama.LONGEST_BEFORE,
        }
    return LlamaConfig(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["hidden"],
        intermediate_size=shape["intermediate"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["key_heads"],
        max_position_embeddings=131072,
        rms_norm_eps=llama.NORM_EPSILON,
        tie_word_embeddings=shape["embeddings"] == 1,
        rope_parameters=rope,
        attn_implementation="sdpa",
        use_cache=False,
    )


def make_model(flags) -> tuple[LlamaForCausalLM, dict[str, nn.Parameter]]:
    """The model of a shape from our start weights, and its weights by our names, in our order."""
    model = LlamaForCausalLM(config_of(flags.shape))
    theirs, named = dict(model.named_parameters()), {}
    with torch.no_grad():
        for name, value in initial_weights(llama, flags):
            layer, _, part = name.removesuffix(".weight").partition(".")
            number = layer.removeprefix("layer")
            of_layer = f"model.layers.{number}.{PARTS.get(part)}.weight"
            named[name] = theirs.pop(ALONE.get(name, of_layer))
            named[name].copy_(torch.from_numpy(value))
    if theirs:
        raise ValueError(f"weights that ours lacks: {', '.join(theirs)}")
    return model, named


def make(flags, _) -> Model:
    network, named = make_model(flags)
    network.to(flags.device)
    asked = optimizer_of(llama, flags)
    groups = [
        {
            "params": [one for name, one in named.items() if llama.decays(name) == decays],
            "weight_decay": asked.weight_decay if decays else 0.0,
        }
        for decays in (True, False)
    ]
    optimizer = torch.optim.AdamW(
        groups,
        lr=llama.learning_rate(flags.batch_size),
        betas=(asked.beta1, asked.beta2),
        eps=asked.epsilon,
        fused=True,
    )
    tokens, following = (
        torch.from_numpy(array).to(flags.device) for array in synthetic_batch(llama, flags, 0)
    )

    def loss_of(model: nn.Module) -> torch.Tensor:
        logits = model(input_ids=tokens).logits.flatten(0, 1)
        return nn.functional.cross_entropy(logits.float(), following.flatten())

    return Model(network, loss_of, optimizer, f"transformers {version}", flags.compile)


if __name__ == "__main__":
    run(llama, make)
