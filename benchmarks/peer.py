"""How a peer in PyTorch trains, whatever its model is, when benchmarks/training.py starts it."""

import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from trainers.contract.flags import parse_flags
from trainers.contract.precision import precision_of
from trainers.contract.recipe import dropout_of, optimizer_of
from trainers.contract.steplog import StepLog
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.inputs import images

MIXED = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16", "tf32")}


class Model(NamedTuple):
    """What a peer trains.

    Attributes:
        network: on its device, with our start weights.
        loss_of: gives the loss of the fixed batch; takes the network, compiled or not.
        optimizer: of the network's weights.
        framework: the peer's name and version.
        compiled: whether torch compiles the network.
    """

    network: nn.Module
    loss_of: Callable[[nn.Module], torch.Tensor]
    optimizer: torch.optim.Optimizer
    framework: str
    compiled: bool


def start_from_ours(network: nn.Module, recipe: ModuleType, flags) -> None:
    """Give a model our start weights; both have them in the order in which an image passes them."""
    with torch.no_grad():
        starts = initial_weights(recipe, flags)
        for weight, (name, value) in zip(network.parameters(), starts, strict=True):
            if weight.shape != value.shape:
                raise ValueError(f"{name} is {tuple(weight.shape)}, ours is {value.shape}")
            weight.copy_(torch.from_numpy(value))


def adamw(network: nn.Module, recipe: ModuleType, flags) -> torch.optim.AdamW:
    """The recipe's AdamW; only matrices decay."""
    asked, weights = optimizer_of(recipe, flags), list(network.parameters())
    groups = [
        {"params": [one for one in weights if one.dim() == 2], "weight_decay": asked.weight_decay},
        {"params": [one for one in weights if one.dim() != 2], "weight_decay": 0.0},
    ]
    rate, betas = recipe.learning_rate(flags.batch_size), (asked.beta1, asked.beta2)
    return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=asked.epsilon, fused=True)


def images_and_labels(recipe: ModuleType, flags) -> tuple[torch.Tensor, torch.Tensor]:
    """Our synthetic batch: normalised images [N, 3, H, W] and labels [N]."""
    pixels, labels = synthetic_batch(recipe, flags, 0)
    normal = (pixels - np.float32(images.MEAN)) / np.float32(images.STD)
    return torch.from_numpy(normal).permute(0, 3, 1, 2), torch.from_numpy(labels)


def run(recipe, make: Callable[..., Model], arguments: Iterable[str] = sys.argv[1:]) -> None:
    """Train as the flags say, and say what a trainer of ours says, by the same step log.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        make: makes what is trained from the flags and the type that is computed in.
        arguments: the flags of a trainer.
    """
    flags = parse_flags(recipe, list(arguments))
    log = StepLog(recipe, flags, rank=0, world_size=1)
    with log.to_the_end():
        _train(recipe, flags, log, make)


def _train(recipe, flags, log: StepLog, make: Callable[..., Model]) -> None:
    torch.set_num_threads(flags.threads)
    torch.manual_seed(flags.seed)
    torch.backends.cudnn.benchmark = True
    # As in ours.
    torch.backends.cudnn.allow_tf32 = flags.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = flags.precision == "tf32"
    precision = precision_of(flags, MIXED)
    computed_in = getattr(torch, precision.dtype)
    trained = make(flags, computed_in)
    network, optimizer = trained.network, trained.optimizer
    weights = list(network.parameters())
    mixed = nullcontext()
    if computed_in != torch.float32:
        mixed = torch.autocast(flags.device, computed_in)
    scaler = torch.amp.GradScaler(flags.device, enabled=precision.loss_scale is not None)
    device = "cpu" if flags.device == "cpu" else torch.cuda.get_device_name()
    count = sum(weight.numel() for weight in weights)
    log.configured(count, trained.framework, {"torch": torch.__version__}, [device], precision)
    if dropout_of(recipe, flags):
        network.eval()
        with torch.no_grad(), mixed:
            log.without_dropout(trained.loss_of(network).item())
        network.train()
    model = torch.compile(network) if trained.compiled else network
    clip = getattr(optimizer_of(recipe, flags), "clip", None)
    for iteration in range(1, flags.iterations + 1):
        with mixed:
            loss = trained.loss_of(model)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(weights, clip)
        scaler.step(optimizer)
        scaler.update()
        if log.prints(iteration):
            log.step(iteration, loss.item(), 0.0)
