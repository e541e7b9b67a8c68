"""torchvision beside a torch without GPUs, for which the package index has none."""

from importlib.metadata import version

import torch

if torch.version.cuda is None and "+cpu" not in version("torchvision"):
    # It is built for a torch with GPUs. Beside another it lacks its own operators, of which
    # ResNet-50 needs none, but it cannot be imported before these two have a name.
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")

import torchvision

__all__ = ["torchvision"]
