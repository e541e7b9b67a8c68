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
        return (pixels.permute(0, 3, 1, 2) - self.mean).div_(self.std)


class Layered(nn.Module):
    """One layer after another, which can be cut between any two of them.

    It takes samples and labels, and returns their mean loss. A subclass has loss(outputs, labels),
    without weights, and layers(flags): for each layer what the recipe's names of its weights begin
    with, "" if it has none, and what makes it.
    """

    def __init__(self, flags):
        super().__init__()
        self.all = nn.Sequential(*(make() for _, make in self.layers(flags)))

    def forward(self, samples, labels):
        return self.loss(self.all(samples), labels)

    @classmethod
    def stage(cls, flags, cuts, number):
        """A stage of a pipeline: takes what the stage before returns, the first one samples."""
        # Only this one is made, for no process has memory for the others.
        names, makers = zip(*cls.layers(flags))
        # A layer has several weights, of which only the first may begin a stage.
        begins = [0, *(names.index(_layer_of(weight, names)) for weight in cuts), len(names)]
        return nn.Sequential(*(make() for make in makers[begins[number] : begins[number + 1]]))


def _layer_of(weight, names):
    return next(name for name in names if name and weight.startswith(f"{name}."))
