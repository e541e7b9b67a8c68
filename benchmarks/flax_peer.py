"""How a peer in Flax trains, whatever its model is, when benchmarks/training.py starts it.

Its users write such a loop: one jitted step, whose state is donated, with optax's optimizer. It
says what a trainer of ours says, by the same step log, and needs jax, flax and optax.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax import numpy as jnp
from trainers.contract.driver import Work
from trainers.contract.flags import parse_flags
from trainers.contract.recipe import AdamW, dropout_of
from trainers.contract.steplog import StepLog
from trainers.frameworks.jax.backend import Backend, precision_of_products
from trainers.frameworks.jax.before import prepare

Tree = dict[str, Any]


class Model(NamedTuple):
    """What a peer trains.

    Attributes:
        loss_of: takes weights, state, a key of random numbers (None: nothing drops out) and the
            batch; returns the loss and the new state.
        weights: ours, as they start.
        decayed: whether each decays.
        state: what else changes, such as batch norms' averages.
        batch: the fixed one.
        framework: the peer's name and version.
    """

    loss_of: Callable[[Tree, Tree, jax.Array | None, Tree], tuple[jax.Array, Tree]]
    weights: Tree
    decayed: Tree
    state: Tree
    batch: Tree
    framework: str


def kernel_of(weight: np.ndarray) -> np.ndarray:
    """A weight as Flax has it: of a layer [in, out] or [height, width, in, out]."""
    return weight.transpose(2, 3, 1, 0) if weight.ndim == 4 else weight.T


def run(recipe, make: Callable[..., Model], arguments: Iterable[str] = sys.argv[1:]) -> None:
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        make: makes what is trained from the flags and the type that is computed in.
        arguments: the flags of a trainer.
    """
    flags = parse_flags(recipe, list(arguments))
    log = StepLog(recipe, flags, rank=0, world_size=1)
    with log.to_the_end():
        prepare(flags)  # its cores and its memory, as ours
        jax.config.update("jax_platforms", flags.device)
        jax.config.update("jax_default_matmul_precision", precision_of_products(flags))  # as ours
        work = Work(recipe, flags, flags.batch_size, Backend.computes)
        _train(work, make(flags, jnp.dtype(work.precision.dtype)), log)


def _train(work: Work, trained: Model, log: StepLog) -> None:
    optimizer = optimizer_of(work, trained.decayed)
    scale = work.precision.factor
    log.configured(
        sum(one.size for one in jax.tree.leaves(trained.weights)),
        trained.framework,
        {"jax": jax.__version__, "optax": optax.__version__},
        [jax.local_devices()[0].device_kind],
        work.precision,
    )

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(weights, state, moments, iteration, batch):
        key = jax.random.fold_in(jax.random.key(work.flags.seed), iteration)

        def scaled(weights):
            loss, after = trained.loss_of(weights, state, key, batch)
            return scale * loss, (loss, after)

        gradients, (loss, after) = jax.grad(scaled, has_aux=True)(weights)
        updates, moments = optimizer.update(gradients, moments, weights)
        return optax.apply_updates(weights, updates), after, moments, loss

    weights, state, batch = jax.device_put((trained.weights, trained.state, trained.batch))
    if dropout_of(work.recipe, work.flags):
        judged = jax.jit(lambda weights, state, batch: trained.loss_of(weights, state, None, batch))
        log.without_dropout(float(judged(weights, state, batch)[0]))
    moments = optimizer.init(weights)
    for iteration in range(1, work.flags.iterations + 1):
        weights, state, moments, loss = step(weights, state, moments, iteration, batch)
        if log.prints(iteration):
            jax.block_until_ready(weights)
            log.step(iteration, float(loss), 0.0)


def optimizer_of(work: Work, decayed: Tree) -> optax.GradientTransformation:
    """The recipe's optimizer, of optax, on gradients of the scaled loss."""
    asked = work.optimizer
    if not isinstance(asked, AdamW):
        decay = optax.add_decayed_weights(asked.weight_decay, mask=decayed)
        return optax.chain(decay, optax.sgd(work.rate, asked.momentum))
    adamw = optax.adamw(
        work.rate, asked.beta1, asked.beta2, asked.epsilon,
        weight_decay=asked.weight_decay, mask=decayed,
    )  # fmt: skip
    clipped = () if asked.clip is None else (optax.clip_by_global_norm(asked.clip),)
    return optax.chain(*clipped, adamw)
