"""What a recipe must have, and what the training loop gets from it.

A recipe is a module of trainers.recipes that needs numpy alone and has

- OPTIMIZER: an Sgd or an AdamW, and learning_rate(global_batch);
- check(shape): raises ValueError for a shape that the model cannot have;
- weight_shapes(shape): name -> size of each weight, in the order in which a sample passes them;
- start(name, size, random, proof): the float32 array from which that weight starts;
- decays(name): whether weight decay applies to it;
- synthetic_batch(shape, batch_size, random): a rank's batch if no data is read, as arrays.

It may have

- DROPOUT: the share of features that the model drops out;
- TABLES: the names of weights whose rows are looked up, of which a batch needs few;
- CUTS: stages, or all their replicas, such as (15, 1) -> the first weight of each but the first;
- flops(shape): floating-point operations to train on a sample;
- kept_bytes(shape, halves, recompute): what a sample keeps for its gradients;
- DIVIDED: "shard" or "tensor" -> the numbers of a shape that so many ranks must divide;
- counts(batch): what a batch counts besides its samples, such as {"tokens": 1000}; it is of arrays
  of numpy or of a framework, and so may be the counts.

A shape is a dictionary of whole numbers, such as {"image_size": 224}.
"""

from functools import reduce
from importlib import import_module
from operator import mul
from typing import NamedTuple, Optional

INTERFACE = (
    "OPTIMIZER",
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
    clip = None


class AdamW(NamedTuple):
    """Adam with bias correction, and decay that is decoupled from it: it takes from the weight.

    With moments m and v, which beta1 and beta2 average, step t takes from a weight w
    rate * (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * w).
    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    """

    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    clip: Optional[float]
    """The norm to which all gradients together, averaged over the ranks, are scaled down first if
    theirs is larger; None: they are not."""


PROOF_DECAY = {Sgd: 1.0, AdamW: 100.0}
"""Weight decay for a proof: a workload's own would not show in the losses of a few steps."""


def recipe_named(name):
    return import_module(f"trainers.recipes.{name}")


def clips(recipe):
    """Whether the recipe's optimizer clips gradients unless it is told not to."""
    return recipe.OPTIMIZER.clip is not None


def optimizer_of(recipe, flags):
    optimizer = recipe.OPTIMIZER
    if flags.proof:
        optimizer = optimizer._replace(weight_decay=PROOF_DECAY[type(optimizer)])
    if flags.no_clip:
        optimizer = optimizer._replace(clip=None)
    return optimizer


def at_scale(asked, rate, scale):
    """Optimizer and rate for gradients of a loss that was multiplied by a power of two.

    They give the same weights, to the bit where nothing is clipped (the 1e-6 that clipping adds to
    a norm is not scaled), and take no kernel that would divide gradients.
    """
    if isinstance(asked, Sgd):
        return asked._replace(weight_decay=asked.weight_decay * scale), rate / scale
    clip = asked.clip and asked.clip * scale
    return asked._replace(epsilon=asked.epsilon * scale, clip=clip), rate


def dropout_of(recipe, flags):
    """The share of features that is dropped out: 0.0 without dropout, and for a proof."""
    return 0.0 if flags.proof else getattr(recipe, "DROPOUT", 0.0)


def stage_counts(recipe):
    """Into how many pipeline stages the model can be cut."""
    return sorted(one for one in getattr(recipe, "CUTS", {}) if isinstance(one, int))


def cuts(recipe, pipeline):
    """The first weight of each stage but the first."""
    return recipe.CUTS.get(tuple(pipeline)) or recipe.CUTS[len(pipeline)]


def operations(products, first=0):
    """Floating-point operations of training by so many multiply-adds forward, which are two each.

    Backward computes gradients of a product's inputs, but the `first` layer's, and of its weights.
    """
    return 2 * (3 * products - first)


def why_undivided(recipe, shape, **ranks):
    """Why ranks cannot share a model's layers or weights at a shape; None if they can."""
    for kind, count in ranks.items():
        for name in getattr(recipe, "DIVIDED", {}).get(kind, ()):
            if shape[name] % (count or 1):
                return f"{kind} is {count}, {name} is {shape[name]}; allowed: what divides {name}"
    return None


def parameters(recipe, shape):
    return sum(reduce(mul, size, 1) for size in recipe.weight_shapes(shape).values())
