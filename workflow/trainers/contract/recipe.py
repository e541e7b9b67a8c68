"""What a recipe must have, and what engines get from it.

A recipe is a module of trainers.recipes that needs numpy alone and has

- OPTIMIZER: an Sgd, and learning_rate(global_batch);
- STATIC_LOSS_SCALE: what float16's loss is multiplied by if the scale is fixed;
- check(shape): raises ValueError for a shape that the model cannot have;
- weight_shapes(shape): name -> size of each weight, in the order in which a sample passes them;
- start(name, size, random, proof): the float32 array from which that weight starts;
- decays(name): whether weight decay applies to it;
- synthetic_batch(shape, batch_size, random): a rank's batch if no data is read, as arrays.

A shape is a dictionary of whole numbers, such as {"image_size": 224}.
"""

from typing import NamedTuple

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
"""Weight decay for a proof: a workload's own would not show in the losses of a few steps."""


def optimizer_of(recipe, flags):
    """The recipe's optimizer; for a proof, with so much weight decay that mistakes show."""
    if flags.proof:
        return recipe.OPTIMIZER._replace(weight_decay=PROOF_DECAY)
    return recipe.OPTIMIZER


def decay_groups(recipe, flags, weights):
    """Weights in groups of equal decay, as optimizers take them.

    Args:
        recipe: the workload's numbers.
        flags: what parse_flags returned.
        weights: the framework's own, in the recipe's order.

    Returns:
        A dictionary of "params" and "weight_decay" for each group that has a weight.
    """
    groups = {True: [], False: []}
    # A model with more weights than names is refused when it says how many parameters it has.
    for name, weight in zip(recipe.weight_shapes(flags.shape), weights):  # noqa: B905 - Python 3.7
        groups[recipe.decays(name)].append(weight)
    decay = optimizer_of(recipe, flags).weight_decay
    return [
        {"params": members, "weight_decay": decay if decayed else 0.0}
        for decayed, members in groups.items()
        if members
    ]


def parameters(recipe, shape):
    """The number of trainable parameters of a recipe's model at a shape."""
    total = 0
    for size in recipe.weight_shapes(shape).values():
        count = 1
        for extent in size:
            count *= extent
        total += count
    return total
