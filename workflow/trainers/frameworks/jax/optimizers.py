"""The recipes' optimizers for JAX."""

import math

import jax.numpy as jnp

from trainers.contract.recipe import AdamW


def optimizer_of(work):
    """The optimizer of a trainers.contract.driver.Work, and the number of its moments.

    It is a function of weights, moments, gradients, all of them by name, and the number of the
    iteration, which returns new weights and moments. Each moment starts from zero.
    """
    return _adamw(work) if isinstance(work.optimizer, AdamW) else _sgd(work)


def _sgd(work):
    asked, rate = work.optimizer, work.rate

    def update(weights, moments, gradients, iteration):
        (momenta,) = moments
        momenta = {
            name: asked.momentum * momenta[name] + gradients[name] + work.decay(name) * weight
            for name, weight in weights.items()
        }
        return {n: weight - rate * momenta[n] for n, weight in weights.items()}, [momenta]

    return update, 1


def _adamw(work):
    asked, rate = work.optimizer, work.rate

    def update(weights, moments, gradients, iteration):
        if asked.clip is not None:
            share = jnp.minimum(asked.clip / (norm(gradients) + 1e-6), 1.0)
            gradients = {name: one * share for name, one in gradients.items()}
        first, second = (
            {n: beta * moment[n] + (1 - beta) * of(one) for n, one in gradients.items()}
            for beta, moment, of in zip(
                (asked.beta1, asked.beta2), moments, (lambda one: one, jnp.square), strict=True
            )
        )
        correct1, correct2 = (_complement(beta, iteration) for beta in (asked.beta1, asked.beta2))
        new = {}
        for name, weight in weights.items():
            root = jnp.sqrt(second[name] / correct2) + asked.epsilon
            new[name] = weight - rate * (first[name] / correct1 / root + work.decay(name) * weight)
        return new, [first, second]

    return update, 2


def _complement(beta, iteration):
    """1 - beta^iteration, in all the digits of float32."""
    return -jnp.expm1(iteration * math.log(beta))


def norm(gradients):
    # In float32 whatever products of features are computed in.
    return jnp.sqrt(sum(jnp.vdot(one, one, precision="highest") for one in gradients.values()))
