"""What a recipe gives, and what engines ask of it.

A recipe is a module of trainers.recipes that needs numpy alone and has

- OPTIMIZER: an Sgd, and learning_rate(global_batch);
- STATIC_LOSS_SCALE: by which float16's loss is multiplied where the scale is fixed;
- check(shape): raises ValueError for a shape that the model cannot have;
- weight_shapes(shape): name -> size of each weight, in the order in which a sample passes them;
- start(name, size, random, proof): the float32 array from which that weight starts;
- decays(name): whether weight decay reaches it;
- synthetic_batch(shape, batch_size, random): a rank's batch where no data is read, as arrays.

A shape is a dictionary of whole numbers, such as {"image_size": 224}.
"""

import hashlib
import zlib
from typing import NamedTuple

import numpy as np

INTERFACE = (
    "OPTIMIZER",
    "STATIC_LOSS_SCALE",
    "check",
    "decays",
    "learning_rate",
    "start",
    "synthetic_batch",
    "weight_shapes",
)
"""The names that a recipe must have."""


class Sgd(NamedTuple):
    """Stochastic gradient descent with momentum; decay is added to the gradient."""

    momentum: float
    weight_decay: float


PROOF_DECAY = 1.0
"""Weight decay for a proof: a workload's own moves no loss within a few steps."""


def optimizer_of(recipe, flags):
    """The recipe's optimizer; for a proof, one that decays so much that mistakes show."""
    if flags.proof:
        return recipe.OPTIMIZER._replace(weight_decay=PROOF_DECAY)
    return recipe.OPTIMIZER


def parameters(recipe, shape):
    """The number of trainable parameters of a recipe's model at a shape."""
    sizes = recipe.weight_shapes(shape).values()
    return sum(int(np.prod(size, dtype=np.int64)) for size in sizes)


def initial_weights(recipe, flags):
    """The weights that training starts from, the same in every framework to the bit.

    Each has a seed of its own, so that a process which holds some of them makes only those.

    Yields:
        Name and float32 array, in the recipe's order.
    """
    for name, size in recipe.weight_shapes(flags.shape).items():
        yield name, initial_weight(recipe, flags, name, size)


def initial_weight(recipe, flags, name, size):
    """One of initial_weights."""
    # The one generator of numpy's whose numbers no version changes.
    random = np.random.RandomState([flags.seed, zlib.crc32(name.encode())])
    return recipe.start(name, size, random, flags.proof)


def synthetic_batch(recipe, flags, rank):
    """A rank's batch where no data is read: noise, the same in every framework."""
    random = np.random.RandomState([flags.seed, rank])
    return recipe.synthetic_batch(flags.shape, flags.batch_size, random)


def uniform(random, size, bound):
    """float32 numbers between -bound and bound, of 65,536 equally likely ones."""
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
