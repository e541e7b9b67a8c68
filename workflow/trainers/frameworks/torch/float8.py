"""Linear layers that multiply in float8, forward and backward, as PyTorch's torchao trains them.

Each factor is scaled to float8's range by the greatest value of the tensor or, with --rowwise, of
each row that a product sums over. All else is as in bf16. Sources: Micikevicius et al. 2022, "FP8
Formats for Deep Learning"; torchao 0.18, whose recipes "tensorwise" and "rowwise" give the same.
"""

import torch
from torch import nn

from trainers.contract.settings import switched
from trainers.contract.steplog import Refused

MULTIPLE = 16  # torch._scaled_mm takes only matrices whose sides are multiples of this
LEAST_CAPABILITY = (8, 9)
"""The least compute capability of NVIDIA's GPUs that multiply in float8."""
_SMALLEST = 1e-12  # so that a tensor of zeros has a scale, too


class Linear(nn.Linear):
    def __init__(self, layer, rowwise):
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias, self.rowwise = layer.weight, layer.bias, rowwise

    def forward(self, x):
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        y = _Product.apply(x, self.weight, self.rowwise)
        return y if self.bias is None else y + self.bias.to(y.dtype)


def converted(network, flags):
    """Make the linear layers inside the network's layers multiply in float8; the log counts them.

    Refused: no linear layer can be converted.
    """
    rows = flags.batch_size * flags.shape.get("context", 0)
    count, others = 0, 0
    for layer in network.layers:
        for parent in list(layer.modules()):
            for name, child in list(parent.named_children()):
                if type(child) is not nn.Linear:
                    continue
                if rows % MULTIPLE or any(size % MULTIPLE for size in child.weight.shape):
                    others += 1
                else:
                    setattr(parent, name, Linear(child, flags.rowwise))
                    count += 1
    switched("float8_linear_layers", count)
    switched("other_linear_layers", others)
    if not count:
        raise Refused(
            f"no linear layer multiplies in float8; allowed: tokens of a batch, inputs and outputs "
            f"that are multiples of {MULTIPLE}"
        )
    return network


def computes_on(device):
    """Whether a device multiplies in these types; AMD's GPUs have other types."""
    if device.type == "cpu":
        return True
    return not torch.version.hip and torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY


def cast(matrix):
    """A matrix in float8, stored by columns, as the right factor of a product must be."""
    return matrix.to(torch.float8_e4m3fn).t().contiguous().t()


def multiply(left, right):
    """The product, without scales, of two matrices that `cast` returned."""
    if right.shape[1] % MULTIPLE:
        return (left.bfloat16() @ right.bfloat16()).to(left.dtype)
    one = torch.ones((), device=left.device)
    rows = right.t().contiguous()  # copies nothing if `right` is stored by columns
    return _product(left.contiguous(), rows, (one, one), torch.bfloat16, fast=True).to(left.dtype)


class _Product(torch.autograd.Function):
    """x [.., I] and weight [O, I] -> [.., O]; the gradients are products in float8, too."""

    @staticmethod
    def forward(ctx, x, weight, rowwise):
        ctx.save_for_backward(x, weight)
        ctx.rowwise = rowwise
        y = _of_rows(x.flatten(0, -2), weight, x.dtype, rowwise, fast=True)
        return y.unflatten(0, x.shape[:-1])

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        gradient = gradient.flatten(0, -2)
        # With one scale per tensor, gradients need the type with the wider range, though it has
        # one bit less of precision.
        how = {"dtype": gradient.dtype, "rowwise": ctx.rowwise, "wide": not ctx.rowwise}
        of_x = _of_rows(gradient, weight.t(), **how).unflatten(0, x.shape[:-1])
        return of_x, _of_rows(gradient.t(), x.flatten(0, -2).t(), **how), None


def _of_rows(left, right, dtype, rowwise, *, wide=False, fast=False):
    """left [M, K] times right [N, K] transposed, multiplied in float8, returned in `dtype`; a
    `wide` left factor gets the type with the wider range.
    """
    left, left_scale = _scaled(left, torch.float8_e5m2 if wide else torch.float8_e4m3fn, rowwise)
    right, right_scale = _scaled(right, torch.float8_e4m3fn, rowwise)
    return _product(left, right, (left_scale, right_scale), dtype, fast=fast)


def _product(left, right, scales, dtype, *, fast):
    """left [M, K] times right [N, K] transposed, each times a scale, or one for each of its rows.

    If it is `fast` matrix units may add up with fewer bits, as torchao lets them forward.
    """
    left_scale, right_scale = scales
    if left_scale.dim() == 0 and left.device.type == "cpu":
        # On a CPU, the kernel for a single scale is a thousand times slower.
        left_scale, right_scale = left_scale.repeat(len(left), 1), right_scale.repeat(len(right), 1)
    if left_scale.dim():
        right_scale = right_scale.t()
    return torch._scaled_mm(
        left, right.t(), left_scale, right_scale, out_dtype=dtype, use_fast_accum=fast
    )


def _scaled(x, dtype, rowwise):
    """A matrix in float8, stored by rows, and its scale: one number, or one for each row."""
    most = torch.finfo(dtype).max
    greatest = x.abs().amax(1, keepdim=True) if rowwise else x.abs().amax()
    # In float64, as in torchao: in float32, torch rounds a number divided by a tensor twice. If the
    # scale's last bit is off, up to a sixteenth of bfloat16's numbers rounds to another float8.
    scale = (most / greatest.double().clamp(min=_SMALLEST)).float()
    if rowwise:
        scale = scale.log2().floor().exp2()  # a power of two rounds nothing
    return (x.float() * scale).clamp(-most, most).to(dtype).contiguous(), scale.reciprocal()
