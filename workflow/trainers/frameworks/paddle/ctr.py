"""The click-through rate model for Paddle 1.8."""

import numpy as np
from paddle import fluid

from trainers.frameworks.paddle.backend_fleet import filled_later
from trainers.inputs.clicks import DENSE, SLOTS, click_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import ctr


def ctr_dnn(flags):
    """Gives the mean cross-entropy.

    It takes dense inputs [N, 13], labels [N], the different rows of all slots, [rows, 1], in order,
    and which of them each slot is, [N * 26].
    """
    shape = flags.shape
    dense = fluid.data("dense", [None, DENSE], "float32")
    labels = fluid.data("labels", [None], "int64")
    rows = fluid.data("rows", [None, 1], "int64")
    places = fluid.data("places", [None], "int64")
    size = [shape["rows"], shape["embedding"]]
    each = fluid.embedding(rows, size, is_sparse=True, param_attr=filled_later(ctr.TABLE))
    each = fluid.layers.reshape(each, [-1, shape["embedding"]])
    found = fluid.layers.gather(each, places, overwrite=False)
    features = fluid.layers.reshape(found, [-1, SLOTS * shape["embedding"]])
    features = fluid.layers.concat([features, dense], axis=1)
    for layer in range(1, ctr.LAYERS + 1):
        features = _linear(features, shape["hidden"], layer, "relu")
    logits = _linear(features, ctr.CLASSES, ctr.LAYERS + 1)
    one_each = fluid.layers.reshape(labels, [-1, 1])
    losses = fluid.layers.softmax_with_cross_entropy(logits, one_each)
    return [dense, labels, rows, places], fluid.layers.mean(losses)


def each_row_once(batch):
    """What the model takes of a batch of clicks."""
    # Paddle looks up and sends rows in sorted trees: those that come once, in order, cost less.
    dense, slots, labels = batch
    rows, places = np.unique(slots, return_inverse=True)
    return dense, labels, rows[:, None], places


def _linear(features, outputs, layer, then=None):
    names = ("fc%d.%s" % (layer, part) for part in ("weight", "bias"))
    weight, bias = map(filled_later, names)
    return fluid.layers.fc(features, outputs, param_attr=weight, bias_attr=bias, act=then)
