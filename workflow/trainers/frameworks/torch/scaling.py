"""Scaling the loss in PyTorch, so that no gradient vanishes in float16."""

import torch

from trainers.contract.precision import DYNAMIC


def make_scaler(precision):
    """The scaler of a precision: scale(loss), then step(optimizer), then update()."""
    # What looks at gradients before the step asks for unscale_(optimizer) first.
    if precision.loss_scale == DYNAMIC:
        # torch.amp has it from 2.3 on, and torch.cuda.amp warns of its own from then on.
        return getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)()
    return FixedScale(precision.factor)


class FixedScale:
    """A power of two, which changes no digit and which no overflow halves; 1 does nothing.

    torch's GradScaler looks for overflows in each step, for which the CPU waits if the optimizer is
    not torch's own. Optimizers are made for scaled gradients, see contract.recipe.at_scale.
    """

    def __init__(self, factor):
        self.factor = factor

    def scale(self, loss):
        return loss if self.factor == 1.0 else loss * self.factor

    def unscale_(self, optimizer):
        """Leave gradients as they are."""

    def step(self, optimizer):
        optimizer.step()

    def update(self):
        """Leave the factor as it is."""
