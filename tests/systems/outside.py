"""torch's, torchvision's and transformers' models, whose losses our trainers must have.

They start from our weights and train our synthetic batch, in float32 and without dropout; rate,
decay and the like are the recipe's numbers. Models, backward passes, steps and clipping are none of
ours. It takes the flags of trainers, a JSON list each, and prints the losses of each.
"""

import json
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from peer import images_and_labels, start_from_ours
from torch import nn
from torchvision_here import torchvision
from trainers.contract.flags import parse_flags, parse_names
from trainers.contract.recipe import AdamW
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import alexnet as alexnets
from trainers.recipes import bert as berts
from trainers.recipes import gpt2 as gpts
from trainers.recipes import llama as llamas
from trainers.recipes import resnet50 as resnets
from trainers.recipes import transformer as transformer_recipe
from trainers.recipes import vgg16 as vggs


class Model(NamedTuple):
    """What is trained.

    Attributes:
        weights: all of them.
        decayed: whether each decays.
        loss: gives the loss of the batch.
    """

    weights: list[torch.Tensor]
    decayed: list[bool]
    loss: Callable[[], torch.Tensor]


def bert(recipe, flags) -> Model:
    # They import torchvision, which must be made ready.
    import huggingface_bert  # noqa: PLC0415
    import huggingface_shared  # noqa: PLC0415

    network, batch = huggingface_bert.make_model(flags), huggingface_bert.make_batch(flags)
    decayed = {
        target: recipe.decays(name)
        for name, size in recipe.weight_shapes(flags.shape).items()
        for target, _ in huggingface_shared.renamed(name, np.empty(size))
    }
    names, weights = zip(*network.theirs.named_parameters(), strict=True)
    return Model([*weights], [decayed[name] for name in names], lambda: network(**batch))


def gpt2(recipe, flags) -> Model:
    import huggingface_gpt2  # noqa: PLC0415

    network = huggingface_gpt2.make_model(flags)
    tokens, following = map(torch.from_numpy, synthetic_batch(recipe, flags, 0))

    def loss() -> torch.Tensor:
        logits = network(tokens).logits
        return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())

    decayed = [*map(recipe.decays, recipe.weight_shapes(flags.shape))]
    return Model([*network.parameters()], decayed, loss)


def llama(recipe, flags) -> Model:
    import huggingface_llama  # noqa: PLC0415

    network, named = huggingface_llama.make_model(flags)
    tokens, following = map(torch.from_numpy, synthetic_batch(recipe, flags, 0))

    def loss() -> torch.Tensor:
        logits = network(input_ids=tokens).logits
        return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())

    return Model([*named.values()], [*map(recipe.decays, named)], loss)


def transformer(recipe, flags) -> Model:
    shape = flags.shape
    network = nn.Transformer(
        shape["hidden"],
        shape["heads"],
        shape["layers"],
        shape["layers"],
        shape["intermediate"],
        dropout=0.0,
        layer_norm_eps=recipe.NORM_EPSILON,
        batch_first=True,
        norm_first=True,
    )
    starts: dict[str, list[torch.Tensor]] = {}
    for name, start in initial_weights(recipe, flags):
        starts.setdefault(of_torchs_transformer(name), []).append(torch.from_numpy(start))
    (word,) = starts.pop("word")
    word = nn.Parameter(word)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(torch.cat(starts.pop(name)))
    assert not starts
    batch = map(torch.from_numpy, synthetic_batch(recipe, flags, 0))
    source, real, target, following, weights = batch
    length, padding = source.shape[1], real == 0
    positions = torch.from_numpy(recipe.positions(shape))[:length]
    wanted = following.masked_fill(weights == 0, -100)  # which cross_entropy leaves out

    def loss() -> torch.Tensor:
        sides = (word[one] * shape["hidden"] ** 0.5 + positions for one in (source, target))
        made = network(
            *sides,
            tgt_mask=network.generate_square_subsequent_mask(length),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        logits, smoothing = made @ word.T, recipe.LABEL_SMOOTHING
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), label_smoothing=smoothing
        )

    trained = [word, *network.parameters()]
    return Model(trained, [weight.dim() > 1 for weight in trained], loss)


def of_torchs_transformer(name: str) -> str:
    """What torch.nn.Transformer calls the weight that has one of ours, or rows of it."""
    layer, part, *others = name.removesuffix(".weight").removesuffix(".bias").split(".")
    if layer == "embeddings":
        return "word"
    kind = name.rpartition(".")[2]
    side, number = layer.rstrip("0123456789"), layer.lstrip("abcdefghijklmnopqrstuvwxyz")
    if not number:
        return f"{side}.norm.{kind}"
    place = f"{side}.layers.{number}"
    if others == ["norm"]:
        order = {"attention": 1, "cross": 2, "ffn": 2 + (side == "decoder")}
        return f"{place}.norm{order[part]}.{kind}"
    if part == "ffn":
        return f"{place}.linear{1 if others == ['in'] else 2}.{kind}"
    place += ".self_attn" if part == "attention" else ".multihead_attn"
    return f"{place}.out_proj.{kind}" if others == ["out"] else f"{place}.in_proj_{kind}"


def of_images(network: nn.Module, recipe, flags) -> Model:
    start_from_ours(network, recipe, flags)
    pixels, labels = images_and_labels(recipe, flags)
    smoothing = getattr(recipe, "LABEL_SMOOTHING", 0.0)
    cross_entropy = nn.CrossEntropyLoss(label_smoothing=smoothing)
    return Model(
        [*network.parameters()],
        [*map(recipe.decays, recipe.weight_shapes(flags.shape))],
        lambda: cross_entropy(network(pixels), labels),
    )


def resnet50(recipe, flags) -> Model:
    return of_images(torchvision.models.resnet50(), recipe, flags)


def vgg16(recipe, flags) -> Model:
    network = torchvision.models.vgg16(dropout=0.0)
    return of_images(unpooled(network, 0, recipe, flags), recipe, flags)


def alexnet(recipe, flags) -> Model:
    network = torchvision.models.alexnet(dropout=0.0)
    return of_images(unpooled(network, 1, recipe, flags), recipe, flags)


def unpooled(network: nn.Module, first: int, recipe, flags) -> nn.Module:
    """A model for small images: torchvision's scales what is small up to what 224 pixels leave.

    Args:
        first: where its first linear layer stands.
    """
    outputs = network.classifier[first].out_features
    network.classifier[first] = nn.Linear(recipe.features(flags.shape), outputs)
    network.avgpool = nn.Identity()
    return network


def train(model: Model, recipe, flags) -> list[float]:
    """The loss of each iteration, before its step."""
    asked = recipe.OPTIMIZER
    groups = [
        {
            "params": [one for one, has in zip(*model[:2], strict=True) if has == decayed],
            "weight_decay": asked.weight_decay * decayed,
        }
        for decayed in (True, False)
    ]
    rate, clip = recipe.learning_rate(flags.batch_size), getattr(asked, "clip", None)
    if isinstance(asked, AdamW):
        betas = (asked.beta1, asked.beta2)
        optimizer = torch.optim.AdamW(groups, rate, betas=betas, eps=asked.epsilon)
    else:
        optimizer = torch.optim.SGD(groups, rate, momentum=asked.momentum)
    losses = []
    for _ in range(flags.iterations):
        optimizer.zero_grad()
        loss = model.loss()
        losses.append(loss.item())
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.weights, clip)
        optimizer.step()
    return losses


MODELS = {
    "alexnet": (alexnet, alexnets),
    "bert-base": (bert, berts),
    "gpt2-124m": (gpt2, gpts),
    "llama3-8b": (llama, llamas),
    "resnet50": (resnet50, resnets),
    "transformer": (transformer, transformer_recipe),
    "vgg16": (vgg16, vggs),
}


def losses_of(arguments: list[str]) -> list[float]:
    make, recipe = MODELS[arguments[arguments.index("--workload") + 1]]
    recipe.DROPOUT = 0.0
    flags = parse_flags(recipe, parse_names(arguments)[1])
    torch.set_num_threads(flags.threads)
    return train(make(recipe, flags), recipe, flags)


if __name__ == "__main__":
    print(json.dumps([losses_of(json.loads(asked)) for asked in sys.argv[1:]]))
