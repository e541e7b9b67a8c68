"""Scaling the loss in PyTorch, so that no gradient vanishes in float16."""

import torch

from trainers.contract.precision import DYNAMIC

# torch.amp has it from 2.3 on, and torch.cuda.amp warns of its own from then on.
GradScaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)


def make_scaler(precision):
    """The scaler of a precision: scale(loss), then step(optimizer), then update()."""
    # What looks at gradients before the step asks for unscale_(optimizer) first.
    return GradScaler() if precision.loss_scale == DYNAMIC else FixedScale(precision.factor)


class FixedScale(GradScaler):
    """A power of two, which changes no digit and which no overflow halves; 1 does nothing.

    torch's GradScaler looks for overflows in each step, for which the CPU waits if the optimizer is
    not torch's own. Optimizers are made for scaled gradients, see contract.recipe.at_scale.
    """

    def __init__(self, factor):
        super().__init__(enabled=False)
        self.factor = factor

    def scale(self, loss):
        return loss if self.factor == 1.0 else loss * self.factor
