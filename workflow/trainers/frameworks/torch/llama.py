"""Llama 3 for PyTorch; trainers/recipes/llama.py says what it is."""

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard, parallel
from torch.nn import functional
from torch.nn.attention import SDPBackend

from trainers.contract.precision import COMPUTES, Precision, asked
from trainers.contract.settings import switched
from trainers.frameworks.torch.attention import joined
from trainers.inputs.tokens import token_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import llama


class Llama(nn.Module):
    def __init__(self, flags):
        super().__init__()
        self.shape = shape = flags.shape
        self.token = nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape["layers"])])
        self.norm = _norm(shape)
        if shape["embeddings"] == 2:
            self.logits = nn.Linear(shape["hidden"], shape["vocabulary"], bias=False)
        pair = (shape["context"], shape["hidden"] // shape["heads"] // 2)
        for name in ("cosines", "sines"):
            self.register_buffer(name, torch.empty(pair), persistent=False)
        self.fill_buffers()
        switched("attention", attention_kernel(shape, flags))

    def fill_buffers(self):
        """Fill in the buffers: again if the model was made without memory."""
        if not self.cosines.is_meta:
            for buffer, array in zip((self.cosines, self.sines), llama.rotations(self.shape)):
                buffer.copy_(torch.from_numpy(array))

    def spread_over(self, mesh):
        """Spread each layer over ranks: heads and inner features, and between them the tokens."""
        tokens, parts = Shard(1), parallel.ColwiseParallel()
        plan = {
            "token": parallel.RowwiseParallel(input_layouts=Replicate(), output_layouts=tokens),
            "norm": parallel.SequenceParallel(),
        }
        if self.shape["embeddings"] == 2:
            plan["logits"] = parallel.ColwiseParallel(
                input_layouts=tokens, output_layouts=Shard(-1), use_local_output=False
            )
        parallel.parallelize_module(self, mesh, plan)
        # The tokens are gathered once for three products. What these take stays a DTensor, so that
        # its gradients, of which each product has a part, are added up once.
        whole = parallel.PrepareModuleOutput(
            output_layouts=tokens, desired_output_layouts=Replicate(), use_local_output=False
        )
        added = parallel.RowwiseParallel(output_layouts=tokens)
        norms = ("attention_norm", "ffn_norm")
        products = ("query", "key", "value", "ffn_gate", "ffn_in")
        of_layer = (norms, parallel.SequenceParallel()), (norms, whole), (products, parts)
        for layer in self.layers:
            for names, how in (*of_layer, (("out", "ffn_out"), added)):
                parallel.parallelize_module(layer, mesh, dict.fromkeys(names, how))

    def forward(self, tokens, following):
        # As an input of a compiled layer, what a spread embedding returns would get its gradient
        # past the place where ranks add theirs up; a copy does not.
        x = self.token(tokens).clone()
        for layer in self.layers:
            x = layer(x, self.cosines, self.sines)
        logits = self._logits(self.norm(x)).flatten(0, 1)
        return functional.cross_entropy(logits.float(), following.flatten())

    def _logits(self, x):
        if self.shape["embeddings"] == 2:
            return self.logits(x)
        if isinstance(x, DTensor):
            x = x.redistribute(placements=[Replicate()])
        return functional.linear(x, self.token.weight)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden, wide = shape["hidden"], shape["intermediate"]
        self.width = hidden // shape["heads"]
        few = self.width * shape["key_heads"]
        self.attention_norm = _norm(shape)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, few, bias=False)
        self.value = nn.Linear(hidden, few, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.ffn_norm = _norm(shape)
        self.ffn_gate = nn.Linear(hidden, wide, bias=False)
        self.ffn_in = nn.Linear(hidden, wide, bias=False)
        self.ffn_out = nn.Linear(wide, hidden, bias=False)

    def forward(self, x, cosines, sines):
        x = x + self.out(self.attend(self.attention_norm(x), cosines, sines))
        inside = self.ffn_norm(x)
        return x + self.ffn_out(functional.silu(self.ffn_gate(inside)) * self.ffn_in(inside))

    def attend(self, x, cosines, sines):
        """Features of what each token attends to: itself and those before it."""
        # Of a layer that is spread over ranks, each has some of the heads.
        query, key, value = (
            linear(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        query, key = rotated(query, cosines, sines), rotated(key, cosines, sines)
        few = key.shape[1] < query.shape[1]  # heads of keys and values, each for several of queries
        return joined(
            functional.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=few
            )
        )


def rotated(x, cosines, sines):
    """Features [N, heads, S, F], of which i and i + F / 2 are rotated by their token's place."""
    left, right = x.float().chunk(2, -1)
    turned = left * cosines - right * sines, right * cosines + left * sines
    return torch.cat(turned, -1).to(x.dtype)


def attention_kernel(shape, flags):
    """The name of the kernel by which torch attends here, such as "cudnn_attention"."""
    dtype = getattr(torch, Precision(COMPUTES[asked(flags)]).dtype)
    width = shape["hidden"] // shape["heads"]
    query, key = (
        torch.empty(1, shape[name], shape["context"], width, device=flags.device, dtype=dtype)
        for name in ("heads", "key_heads")
    )
    fewer = shape["key_heads"] < shape["heads"]
    query.requires_grad_()  # not every kernel has a backward pass
    chosen = torch._fused_sdp_choice(query, key, key, is_causal=True, enable_gqa=fewer)
    return SDPBackend(chosen).name.lower()


def _norm(shape):
    return nn.RMSNorm(shape["hidden"], eps=llama.NORM_EPSILON)
