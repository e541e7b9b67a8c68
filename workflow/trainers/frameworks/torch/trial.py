"""What the doctor asks of PyTorch."""

import torch

from trainers.contract import trial
from trainers.frameworks.torch import float8


class Trial(trial.Trial):
    def convolve(self, images, filters):
        return torch.conv2d(images, filters)

    def multiply(self, left, right):
        return float8.multiply(left, right) if left.element_size() == 1 else left @ right

    def cast(self, numbers, dtype):
        return float8.cast(numbers) if dtype == "float8" else numbers.to(getattr(torch, dtype))
