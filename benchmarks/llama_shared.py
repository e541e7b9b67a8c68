"""The configuration of transformers' Llama and the names of its weights, in PyTorch and Flax."""

from trainers.recipes import llama
from transformers import LlamaConfig

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
"""Our names of a layer's weights -> those of transformers."""


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


def theirs_of(name: str) -> str:
    """The name that transformers gives one of our weights in PyTorch."""
    layer, _, part = name.removesuffix(".weight").partition(".")
    number = layer.removeprefix("layer")
    return ALONE.get(name) or f"model.layers.{number}.{PARTS[part]}.weight"
