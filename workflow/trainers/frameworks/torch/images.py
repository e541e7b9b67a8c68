"""What models of images have in common in PyTorch."""

import torch
from torch import nn

from trainers.inputs import images


class Normalize(nn.Module):
    """Takes uint8 images [N, H, W, 3], returns normalised ones [N, 3, H, W], channels last."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(images.MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(images.STD).view(3, 1, 1), persistent=False)

    def forward(self, pixels):
        # [N, H, W, 3] viewed as [N, 3, H, W] is already in channels-last order in memory.
        return (pixels.permute(0, 3, 1, 2) - self.mean) / self.std
