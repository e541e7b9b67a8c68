"""What the doctor asks of JAX."""

from jax import lax

from trainers.contract import trial
from trainers.frameworks.jax.backend import OWN


class Trial(trial.Trial):
    def __init__(self, backend):
        super().__init__(backend)
        self.convolve = backend.mapped(_convolved, OWN, OWN)
        self.multiply = backend.mapped(lambda left, right: left @ right, OWN, OWN)


def _convolved(images, filters):
    return lax.conv_general_dilated(images[0], filters[0], (1, 1), "VALID")[None]
