"""The arrays that a recipe makes, the same in every framework: weights and synthetic batches."""

import functools
import hashlib
import math
import zlib

import numpy as np

from trainers.contract.steplog import Refused


def initial_weights(recipe, flags):
    """The weights that training starts from, the same in every framework to the bit.

    Each has its own seed, so that a process that holds some of them makes only those.

    Yields:
        Name and float32 array, in the recipe's order.
    """
    for name, size in recipe.weight_shapes(flags.shape).items():
        yield name, initial_weight(recipe, flags, name, size)


def with_start(weights, recipe, flags):
    """A framework's weights, in the recipe's order, each beside where it starts.

    Yields:
        The weight, its name and its float32 array.

    Raises:
        Refused: there are more of them than the recipe has, or fewer.
    """
    weights = list(weights)
    sizes = recipe.weight_shapes(flags.shape)
    if len(weights) != len(sizes):
        raise Refused(f"the model has {len(weights)} weights, {flags.workload} has {len(sizes)}")
    for weight, (name, value) in zip(weights, initial_weights(recipe, flags)):
        yield weight, name, value


def initial_weight(recipe, flags, name, size):
    """One of initial_weights."""
    # numpy's one generator whose numbers are the same in every version.
    random = np.random.RandomState([flags.seed, zlib.crc32(name.encode())])
    return recipe.start(name, size, random, flags.proof)


def synthetic_batch(recipe, flags, rank):
    """A rank's batch if no data is read: noise, the same in every framework."""
    random = np.random.RandomState([flags.seed, rank])
    return recipe.synthetic_batch(flags.shape, flags.batch_size, random)


def uniform(random, size, bound):
    """float32 numbers between -bound and bound, each one of 65,536 equally likely values."""
    drawn = np.frombuffer(random.bytes(2 * int(np.prod(size))), "<u2").astype(np.float32)
    drawn -= np.float32(32767.5)
    drawn *= np.float32(bound / 32768)
    return drawn.reshape(size)


def truncated_normal(random, size, deviation):
    """float32 numbers of a normal distribution that is cut off at twice its standard deviation.

    Each is one of 65,536 equally likely values.

    Args:
        random: a RandomState.
        size: of the array.
        deviation: the normal distribution's, before it is cut off.
    """
    drawn = np.frombuffer(random.bytes(2 * int(np.prod(size))), "<u2")
    return (_quantiles() * np.float32(deviation))[drawn].reshape(size)


@functools.lru_cache(maxsize=None)
def _quantiles():
    """The middles of 65,536 equally likely parts of a normal distribution cut off at 2: float32."""
    places = np.linspace(-2.0, 2.0, 4097)
    below = np.array([math.erf(place / 2**0.5) for place in places]) / math.erf(2**0.5)
    middles = (np.arange(65536) + 0.5) / 65536
    return np.interp(middles, (below + 1) / 2, places).astype(np.float32)


class Watched:
    """A framework's weights from their start to their end.

    A proof keeps the start, on rank 0, to say how far each has come: decay of a single bias hardly
    shows in a loss, but many times over in the change of that bias.

    Args:
        log: the run's StepLog.
        read: gives the weights as arrays, in the recipe's order, each time that it is called. They
            may be transposed, as frameworks have them, which changes no length.
    """

    def __init__(self, log, read):
        self._read = read
        # Some frameworks' arrays are the weights themselves, which will change.
        proves = log.flags.proof and log.rank == 0
        self._start = [np.array(weight, np.float32) for weight in read()] if proves else None

    def digest(self):
        """A short digest of the weights as they are."""
        return digest(self._read())

    def changes(self):
        """How far each weight has come since the start, as an L2 norm; None but for a proof."""
        if self._start is None:
            return None
        return [length(weight - start) for weight, start in zip(self._read(), self._start)]


def length(array):
    """The L2 norm of a float32 array, added up in float64."""
    return math.sqrt(np.sum(np.square(array), dtype=np.float64))


def digest(weights):
    """A short digest of arrays of weights."""
    seen = hashlib.sha256()
    for weight in weights:
        seen.update(np.ascontiguousarray(weight, np.float32))
    return seen.hexdigest()[:16]
