"""Layers of convolutional networks in words of which torch.compile makes faster kernels.

But for rounding, they have the weights, outputs and gradients of the layers that they replace.
docs/gpu-builds.md has what each gained on a GPU.
"""

import torch
from torch import nn
from torch.nn import functional


class BatchNorm2d(nn.BatchNorm2d):
    """Takes mean and variance from two sums, in one pass over its input [N, C, H, W].

    The compiler would keep a running mean and variance for each part of the input and merge them.
    """

    def forward(self, x):
        wide = x.float()
        count = x.numel() // x.shape[1]
        mean = wide.mean((0, 2, 3))
        variance = (wide.square().mean((0, 2, 3)) - mean.square()).clamp(min=0)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (count / max(count - 1, 1)), self.momentum)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        shift = self.bias - mean * scale
        return (wide * scale[:, None, None] + shift[:, None, None]).to(x.dtype)


class Stem(nn.Conv2d):
    """A convolution of 7 x 7 at stride 2, computed as one of 4 x 4 at stride 1.

    Two by two pixels become one of four times the channels, [N, 3, H, W] -> [N, 12, H/2, W/2]:
    matrix units work on eight channels at a time, and would leave most of them idle for three.
    """

    def __init__(self, channels, out):
        super().__init__(channels, out, 7, stride=2, padding=3, bias=False)
        self._idle = -4 * channels % 8  # channels of zeros, to a multiple of eight

    def forward(self, x):
        if x.shape[2] % 2 or x.shape[3] % 2:
            return super().forward(x)
        # An output sees the pixels from 2 i - 3 to 2 i + 3; with one more before them, which counts
        # nothing, these are the pairs from i - 2 to i + 1.
        pairs = functional.pad(_folded(x), (2, 1, 2, 1, 0, self._idle))
        weight = _folded(functional.pad(self.weight, (1, 0, 1, 0)))
        return functional.conv2d(pairs, functional.pad(weight, (0, 0, 0, 0, 0, self._idle)))


def _folded(x):
    """[N, C, 2 H, 2 W] as [N, 4 C, H, W]."""
    height, width = x.shape[2] // 2, x.shape[3] // 2
    parts = x.unflatten(2, (height, 2)).unflatten(4, (width, 2))
    return parts.permute(0, 3, 5, 1, 2, 4).flatten(1, 3)


class MaxPool(nn.Module):
    """The maximum of 3 x 3 at stride 2: [N, C, 2 H, 2 W] -> [N, C, H, W]."""

    def forward(self, x):
        if x.shape[2] % 2 or x.shape[3] % 2:
            return functional.max_pool2d(x, 3, stride=2, padding=1)
        return _MaxPool.apply(x)


class _MaxPool(torch.autograd.Function):
    """Its gradient asks each window once for what it chose, and not each pixel four windows."""

    @staticmethod
    def forward(ctx, x):
        height, width = x.shape[2], x.shape[3]
        padded = functional.pad(x, (1, 1, 1, 1), value=-torch.inf)
        places = [
            padded[:, :, row : row + height : 2, column : column + width : 2]
            for row in range(3)
            for column in range(3)
        ]
        best, chosen = places[0], torch.zeros_like(places[0], dtype=torch.int8)
        for number, value in enumerate(places[1:], 1):
            better = (value > best) | value.isnan()
            best = torch.where(better, value, best)
            chosen = torch.where(better, number, chosen)
        ctx.save_for_backward(chosen)
        return best

    @staticmethod
    def backward(ctx, gradient):
        (chosen,) = ctx.saved_tensors

        def given(row, column):
            """What each window gives to the pixel at that place in it, [N, H, W, C]."""
            mine = torch.where(chosen == 3 * row + column, gradient, 0)
            return mine.permute(0, 2, 3, 1)

        def below(x):
            return functional.pad(x[:, 1:], (0, 0, 0, 0, 0, 1))

        def right(x):
            return functional.pad(x[:, :, 1:], (0, 0, 0, 1))

        # Of two by two pixels the first is in the middle of a window and in no other one.
        first = given(1, 1)
        second = given(1, 2) + right(given(1, 0))
        third = given(2, 1) + below(given(0, 1))
        fourth = given(2, 2) + right(given(2, 0)) + below(given(0, 2) + right(given(0, 0)))
        upper, lower = torch.stack((first, second), 3), torch.stack((third, fourth), 3)
        return torch.stack((upper, lower), 2).flatten(3, 4).flatten(1, 2).permute(0, 3, 1, 2)
