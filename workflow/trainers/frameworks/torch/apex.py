"""NVIDIA's fused optimizers, which its container has; PyPI's apex is an unrelated package."""

from trainers.contract.recipe import AdamW

try:
    from apex.optimizers import FusedAdam, FusedSGD
except ImportError:
    from trainers.frameworks.torch.backend import torch_optimizer as fused_optimizer
else:

    def fused_optimizer(groups, rate, asked):
        """apex's own; takes what trainers.frameworks.torch.backend.torch_optimizer does."""
        if isinstance(asked, AdamW):
            # Its decay is decoupled and its bias corrected unless it is told otherwise.
            return FusedAdam(groups, lr=rate, betas=(asked.beta1, asked.beta2), eps=asked.epsilon)
        return FusedSGD(groups, lr=rate, momentum=asked.momentum)


__all__ = ["fused_optimizer"]
