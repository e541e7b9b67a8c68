"""word2vec for Paddle 1.8; trainers/recipes/word2vec.py says what it is."""

import numpy as np
from paddle import fluid

from trainers.frameworks.paddle.backend_fleet import filled_later
from trainers.inputs.words import word_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import word2vec


def skip_gram(flags):
    """Takes centre words and contexts [N], negatives [N, K]; gives the mean loss of the pairs."""
    negatives_each = flags.shape["negatives"]
    centres = fluid.data("centres", [None], "int64")
    contexts = fluid.data("contexts", [None], "int64")
    negatives = fluid.data("negatives", [None, negatives_each], "int64")
    size = [flags.shape["vocabulary"], flags.shape["width"]]
    centre, context = map(filled_later, word2vec.TABLES)
    # What is looked up at servers has two dimensions, and what comes from there need not keep them.
    each = fluid.layers.unsqueeze(centres, [1])
    vectors = fluid.embedding(each, size, is_sparse=True, param_attr=centre)
    vectors = fluid.layers.reshape(vectors, [-1, 1, flags.shape["width"]])
    # The context first, then the negatives: one look-up, and one update of each row.
    others = fluid.layers.concat([fluid.layers.unsqueeze(contexts, [1]), negatives], axis=1)
    rows = fluid.embedding(others, size, is_sparse=True, param_attr=context)
    rows = fluid.layers.reshape(rows, [-1, 1 + negatives_each, flags.shape["width"]])
    signs = fluid.layers.assign(np.array([[-1] + negatives_each * [1]], np.float32))
    products = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(rows, vectors), dim=2)
    losses = fluid.layers.softplus(fluid.layers.elementwise_mul(products, signs))
    return [centres, contexts, negatives], fluid.layers.mean(fluid.layers.reduce_sum(losses, dim=1))
