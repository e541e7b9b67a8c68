"""The click-through rate model for Paddle 1.8."""

from paddle import fluid

from trainers.frameworks.paddle.fluid import filled_later
from trainers.inputs.clicks import DENSE, SLOTS, click_batches  # noqa: F401 - system.yaml names it
from trainers.recipes import ctr


def ctr_dnn(flags):
    """Takes dense inputs [N, 13], slots [N, 26] and labels [N]; gives their mean cross-entropy."""
    shape = flags.shape
    dense = fluid.data("dense", [None, DENSE], "float32")
    slots = fluid.data("slots", [None, SLOTS], "int64")
    labels = fluid.data("labels", [None], "int64")
    size = [shape["rows"], shape["embedding"]]
    found = fluid.embedding(slots, size, is_sparse=True, param_attr=filled_later(ctr.TABLE))
    features = fluid.layers.reshape(found, [-1, SLOTS * shape["embedding"]])
    features = fluid.layers.concat([features, dense], axis=1)
    for layer in range(1, ctr.LAYERS + 1):
        features = _linear(features, shape["hidden"], layer, "relu")
    logits = _linear(features, ctr.CLASSES, ctr.LAYERS + 1)
    one_each = fluid.layers.reshape(labels, [-1, 1])
    losses = fluid.layers.softmax_with_cross_entropy(logits, one_each)
    return [dense, slots, labels], fluid.layers.mean(losses)


def _linear(features, outputs, layer, then=None):
    names = ("fc%d.%s" % (layer, part) for part in ("weight", "bias"))
    weight, bias = map(filled_later, names)
    return fluid.layers.fc(features, outputs, param_attr=weight, bias_attr=bias, act=then)
