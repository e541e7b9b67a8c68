"""Plain SGD by hand, in numpy: what synchronous parameter servers must train."""

from argparse import Namespace

import numpy as np
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import ctr, word2vec

LAYERS = range(1, ctr.LAYERS + 2)


def ctr_losses(shape: dict[str, int], batch_size: int, ranks: int, iterations: int) -> np.ndarray:
    """The losses of a proof of the click-through rate model, [iterations, ranks].

    Each step takes the ranks' mean gradients.
    """
    flags = Namespace(shape=shape, batch_size=batch_size, seed=1, proof=True)
    weights = dict(initial_weights(ctr, flags))
    batches = [synthetic_batch(ctr, flags, rank) for rank in range(ranks)]
    losses = []
    for _ in range(iterations):
        found = [_loss_and_gradients(weights, *batch) for batch in batches]
        losses.append([loss for loss, _ in found])
        rate = np.float32(ctr.learning_rate(batch_size * ranks) / ranks)
        weights = {
            name: weight - rate * sum(gradients[name] for _, gradients in found)
            for name, weight in weights.items()
        }
    return np.array(losses)


def _loss_and_gradients(weights, dense, slots, labels):
    each, features = np.arange(len(labels)), weights["table"].shape[1]
    into = [np.concatenate([weights["table"][slots].reshape(len(labels), -1), dense], axis=1)]
    for layer in LAYERS:
        outputs = into[-1] @ weights[f"fc{layer}.weight"] + weights[f"fc{layer}.bias"]
        into.append(np.maximum(outputs, 0))
    shares = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    loss = -np.log(shares[each, labels]).mean()
    slope, gradients = shares, {}
    slope[each, labels] -= 1
    slope /= len(labels)
    for layer in reversed(LAYERS):
        gradients[f"fc{layer}.weight"] = into[layer - 1].T @ slope
        gradients[f"fc{layer}.bias"] = slope.sum(axis=0)
        slope = slope @ weights[f"fc{layer}.weight"].T
        if layer > 1:
            slope = slope * (into[layer - 1] > 0)
    gradients["table"] = np.zeros_like(weights["table"])
    of_slots = slope[:, : ctr.SLOTS * features].reshape(-1, features)
    np.add.at(gradients["table"], slots.ravel(), of_slots)
    return loss, gradients


def word2vec_losses(shape: dict[str, int], batches: list, *, proof: bool = False) -> list[float]:
    """The loss of word2vec on each batch before it is trained on, one after the other.

    Args:
        shape: the workload's.
        batches: of equally many pairs, as the recipe's synthetic_batch.
        proof: whether weights start as for a proof.
    """
    flags = Namespace(shape=shape, seed=1, proof=proof)
    centre, context = (one for _, one in initial_weights(word2vec, flags))
    rate = word2vec.learning_rate(len(batches[0][0]))
    return [_trained(centre, context, rate, batch) for batch in batches]


def _trained(centre, context, rate, batch) -> float:
    centres, contexts, negatives, _ = batch
    others = np.concatenate([contexts[:, None], negatives], 1)
    signs = np.array([-1] + [1] * negatives.shape[1])
    vectors, rows = centre[centres], context[others]
    products = signs * np.einsum("nw,nkw->nk", vectors, rows)
    slopes = signs / (1 + np.exp(-products)) / len(centres)
    np.subtract.at(centre, centres, rate * np.einsum("nk,nkw->nw", slopes, rows))
    np.subtract.at(context, others, rate * slopes[:, :, None] * vectors[:, None])
    return float(np.logaddexp(0, products).sum(1).mean())
