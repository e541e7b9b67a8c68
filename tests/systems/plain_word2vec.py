"""word2vec by hand, in numpy: what one trainer on parameter servers must train."""

from argparse import Namespace

import numpy as np
from trainers.contract.weights import initial_weights
from trainers.recipes import word2vec


def plain_losses(shape: dict[str, int], batches: list, *, proof: bool = False) -> list[float]:
    """The loss of each batch before it is trained on, one after the other.

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
