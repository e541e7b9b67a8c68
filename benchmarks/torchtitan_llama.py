"""Llama as torchtitan trains it on one device, written by hand, from weights of ours.

torchtitan itself wants a launcher, files and tokens of its own. What decides its speed on a device
is here: rotations by complex numbers, of neighbouring features; queries in groups by torch's
attention; each layer compiled by itself, and the loss, too. Source: pytorch/torchtitan,
models/llama3. It needs torch alone; benchmarks/training.py starts it beside our trainer, with the
same flags.
"""

import torch
from peer import Model, adamw, run
from torch import nn
from torch.nn import functional
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import llama


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden, wide = shape["hidden"], shape["intermediate"]
        self.width = hidden // shape["heads"]
        few = self.width * shape["key_heads"]
        self.attention_norm = nn.RMSNorm(hidden, eps=llama.NORM_EPSILON)
        sizes = {"query": (hidden, hidden), "key": (hidden, few), "value": (hidden, few)}
        sizes |= {"out": (hidden, hidden)}
        self.attention = nn.ModuleDict(
            {name: nn.Linear(*size, bias=False) for name, size in sizes.items()}
        )
        self.ffn_norm = nn.RMSNorm(hidden, eps=llama.NORM_EPSILON)
        sizes = {"gate": (hidden, wide), "in": (hidden, wide), "out": (wide, hidden)}
        self.ffn = nn.ModuleDict(
            {name: nn.Linear(*size, bias=False) for name, size in sizes.items()}
        )

    def forward(self, x, rotations):
        given = self.attention_norm(x)
        query, key, value = (
            self.attention[name](given).unflatten(-1, (-1, self.width))
            for name in ("query", "key", "value")
        )
        query, key = rotated(query, rotations), rotated(key, rotations)
        attended = functional.scaled_dot_product_attention(
            *(one.transpose(1, 2) for one in (query, key, value)), is_causal=True, enable_gqa=True
        )
        x = x + self.attention["out"](attended.transpose(1, 2).flatten(2))
        given = self.ffn_norm(x)
        gate = functional.silu(self.ffn["gate"](given))
        return x + self.ffn["out"](gate * self.ffn["in"](given))


def rotated(x, rotations):
    """Rotate features [N, S, heads, F]; features 2 i and 2 i + 1 make up a complex number."""
    numbers = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(numbers * rotations[:, None]).flatten(3).type_as(x)


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.token = nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape["layers"]))
        self.norm = nn.RMSNorm(shape["hidden"], eps=llama.NORM_EPSILON)
        self.logits = nn.Linear(shape["hidden"], shape["vocabulary"], bias=False)
        if shape["embeddings"] == 1:
            self.logits.weight = self.token.weight
        cosines, sines = map(torch.from_numpy, llama.rotations(shape))
        self.register_buffer("rotations", torch.complex(cosines, sines), persistent=False)

    def forward(self, tokens):
        x = self.token(tokens)
        for layer in self.layers:
            x = layer(x, self.rotations)
        return self.logits(self.norm(x))


def loss_of_logits(logits, following):
    return functional.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def make(flags, _) -> Model:
    network = Llama(flags.shape)
    with torch.no_grad():
        for name, value in initial_weights(llama, flags):
            start = torch.from_numpy(value)
            if name.endswith((".query.weight", ".key.weight")):
                width = flags.shape["hidden"] // flags.shape["heads"]
                halves = start.unflatten(0, (-1, 2, width // 2))
                start = halves.transpose(1, 2).flatten(0, 2)  # the halves become neighbours
            weight_of(network, name).copy_(start)
    network.to(flags.device)
    loss = loss_of_logits
    if flags.compile:
        for layer in network.layers:
            layer.compile(fullgraph=True)
        loss = torch.compile(loss)
    tokens, following = (
        torch.from_numpy(array).to(flags.device) for array in synthetic_batch(llama, flags, 0)
    )
    return Model(
        network,
        lambda model: loss(model(tokens), following),
        adamw(network, llama, flags),
        f"torchtitan's by hand, torch {torch.__version__}",
        compiled=False,
    )


def weight_of(network: Llama, name: str) -> nn.Parameter:
    """The weight that has this name in our recipe."""
    layer, *path = name.removesuffix(".weight").split(".")
    alone = {"embeddings": network.token, "last": network.norm, "logits": network.logits}
    if layer in alone:
        return alone[layer].weight
    own, (part, kind) = network.layers[int(layer.removeprefix("layer"))], path
    module = getattr(own, f"{part}_norm") if kind == "norm" else getattr(own, part)[kind]
    return module.weight


if __name__ == "__main__":
    run(llama, make)
