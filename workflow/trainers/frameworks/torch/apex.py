"""NVIDIA's fused optimizers, which its container has; PyPI's apex is an unrelated package."""

try:
    from apex.optimizers import FusedSGD as fused_sgd
except ImportError:
    from trainers.frameworks.torch.engine import torch_sgd as fused_sgd

__all__ = ["fused_sgd"]
