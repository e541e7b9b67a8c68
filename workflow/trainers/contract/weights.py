"""The arrays that a recipe makes, the same in every framework: weights and synthetic batches."""

import hashlib
import zlib

import numpy as np


def initial_weights(recipe, flags):
    """The weights that training starts from, the same in every framework to the bit.

    Each has its own seed, so that a process that holds some of them makes only those.

    Yields:
        Name and float32 array, in the recipe's order.
    """
    for name, size in recipe.weight_shapes(flags.shape).items():
        yield name, initial_weight(recipe, flags, name, size)


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


def digest(weights):
    """A short digest of arrays of weights."""
    seen = hashlib.sha256()
    for weight in weights:
        seen.update(np.ascontiguousarray(weight, np.float32))
    return seen.hexdigest()[:16]
