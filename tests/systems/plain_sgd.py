"""Plain SGD in numpy, a batch after the other: what parameter servers must come to, too."""

from argparse import Namespace

import numpy as np
from trainer import recipe_of
from trainers.contract.weights import initial_weights


def plain_losses(workload: str, shape: dict, batches: list, *, proof: bool = False) -> list[float]:
    """The loss of each batch before it is trained on, from the recipe's start weights of seed 1.

    Args:
        workload: word2vec or ctr.
        shape: all of it.
        batches: of equally many samples, as the recipe's synthetic_batch.
        proof: whether weights start as for a proof.
    """
    recipe = recipe_of(workload)
    flags = Namespace(shape=shape, seed=1, proof=proof)
    weights = dict(initial_weights(recipe, flags))
    rate = recipe.learning_rate(len(batches[0][0]))
    step = {"word2vec": _word2vec, "ctr": _ctr}[workload]
    return [step(weights, rate, *batch) for batch in batches]


def _word2vec(weights, rate, centres, contexts, negatives, _firsts) -> float:
    centre, context = weights["centre.weight"], weights["context.weight"]
    others = np.concatenate([contexts[:, None], negatives], 1)
    signs = np.array([-1] + [1] * negatives.shape[1])
    vectors, rows = centre[centres], context[others]
    products = signs * np.einsum("nw,nkw->nk", vectors, rows)
    slopes = signs / (1 + np.exp(-products)) / len(centres)
    np.subtract.at(centre, centres, rate * np.einsum("nk,nkw->nw", slopes, rows))
    np.subtract.at(context, others, rate * slopes[:, :, None] * vectors[:, None])
    return float(np.logaddexp(0, products).sum(1).mean())


def _ctr(weights, rate, dense, slots, labels) -> float:
    table, samples = weights["table"], len(labels)
    embedded = table[slots]
    inputs = [np.concatenate([embedded.reshape(samples, -1), dense], 1)]
    for layer in range(1, 5):
        made = inputs[-1] @ weights[f"fc{layer}.weight"] + weights[f"fc{layer}.bias"]
        inputs.append(np.maximum(made, 0) if layer < 4 else made)
    logits = inputs.pop()
    shares = np.exp(logits - np.logaddexp(*logits.T)[:, None])
    loss = -np.log(shares[np.arange(samples), labels]).mean()
    slopes = (shares - np.eye(2)[labels]) / samples
    for layer in range(4, 0, -1):
        weight = weights[f"fc{layer}.weight"]
        below = (slopes @ weight.T) * ((inputs[-1] > 0) if layer > 1 else 1)
        weight -= (rate * inputs.pop().T @ slopes).astype(np.float32)
        weights[f"fc{layer}.bias"] -= (rate * slopes.sum(0)).astype(np.float32)
        slopes = below
    np.subtract.at(table, slots, rate * slopes[:, : embedded[0].size].reshape(embedded.shape))
    return float(loss)
