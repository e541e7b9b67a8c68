"""NVIDIA's fused optimizers, which its container has; PyPI's apex is an unrelated package."""

from trainers.contract.recipe import AdamW
from trainers.frameworks.torch.backend import torch_optimizer

try:
    from apex.optimizers import FusedAdam, FusedSGD
except ImportError:
    FusedAdam = None


def fused_optimizer(groups, rate, asked):
    if FusedAdam is None:
        return torch_optimizer(groups, rate, asked)
    if isinstance(asked, AdamW):
        # Its decay is decoupled and its bias corrected unless it is told otherwise.
        return FusedAdam(groups, lr=rate, betas=(asked.beta1, asked.beta2), eps=asked.epsilon)
    return FusedSGD(groups, lr=rate, momentum=asked.momentum)
