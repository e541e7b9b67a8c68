"""ResNet-50 of torchvision and timm as their users train it, from weights of ours and on our batch.

benchmarks/training.py starts it beside our trainer: the peer's name comes first, the flags are the
trainer's. It says what a trainer of ours says, by the same step log, and needs torch, torchvision
and timm. Ours takes bytes and normalises them in every step; the others are given what is
normalised already.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

import torch
from peer import MIXED, Model, images_and_labels, run, start_from_ours
from torch import nn
from torchvision_here import torchvision
from trainers.contract.driver import Work
from trainers.recipes import resnet50


class Peer(NamedTuple):
    """How others train it.

    Attributes:
        make: makes the model.
        framework: its name and version.
        channels_last: the order of the model's and the images' numbers in memory.
        cast: whether images are given in the type that is computed in.
        compiled: whether torch compiles it, whatever the flags say.
    """

    make: Callable[[], nn.Module]
    framework: str
    channels_last: bool = False
    cast: bool = False
    compiled: bool = False


def timms_resnet50() -> nn.Module:
    import timm  # noqa: PLC0415 - it imports torchvision, which must be made ready

    return timm.create_model("resnet50")


TORCHVISION = torchvision.models.resnet50, f"torchvision {torchvision.__version__}"
TIMM = timms_resnet50, f"timm {version('timm')}"
PEERS = {
    "torchvision": Peer(*TORCHVISION),
    "torchvision-compiled": Peer(*TORCHVISION, compiled=True),
    "timm": Peer(*TIMM, channels_last=True),
    # The recipe of milabench's ResNet-50, whose model is torchvision's.
    "milabench": Peer(*TORCHVISION, channels_last=True, cast=True, compiled=True),
}


def make(peer: Peer, flags, computed_in: torch.dtype) -> Model:
    order = torch.channels_last if peer.channels_last else torch.contiguous_format
    network = peer.make()
    start_from_ours(network, resnet50, flags)
    network.to(flags.device, memory_format=order)
    work = Work(resnet50, flags, flags.batch_size, MIXED)
    optimizer = torch.optim.SGD(
        work.groups(work.named(network.parameters())),
        lr=work.rate,
        momentum=work.optimizer.momentum,
        fused=True,
    )
    loss_of = nn.CrossEntropyLoss(label_smoothing=resnet50.LABEL_SMOOTHING)
    pixels, labels = images_and_labels(resnet50, flags)
    kind = computed_in if peer.cast else torch.float32
    pixels = pixels.to(flags.device, kind, memory_format=order)
    labels = labels.to(flags.device)
    return Model(
        network,
        lambda model: loss_of(model(pixels), labels),
        optimizer,
        peer.framework,
        peer.compiled or flags.compile,
    )


if __name__ == "__main__":
    run(resnet50, partial(make, PEERS[sys.argv[1]]), sys.argv[2:])
