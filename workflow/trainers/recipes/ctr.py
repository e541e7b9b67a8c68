"""The click-through rate model of FleetX: one table for 26 slots, and three layers above.

10,431,212 parameters at the default shape, and 10,000,010 of them are the table's. Source: FleetX's
CTR example (CTR-DNN), whose layers start with a deviation of 1/sqrt(inputs). It trains with Adam;
here it is plain SGD, with which synchronous updates of a table are exact in every framework.
"""

import numpy as np

from trainers.contract.recipe import Sgd, operations
from trainers.contract.weights import uniform
from trainers.inputs.clicks import DENSE, SLOTS

CLASSES = 2
LAYERS = 3
TABLE = "table"
TABLES = (TABLE,)
OPTIMIZER = Sgd(momentum=0.0, weight_decay=0.0)


def check(shape):
    """Any shape will do."""


def learning_rate(global_batch):
    """The learning rate, whatever the batch."""
    return 0.1


def decays(name):
    """No weight decays: of a table, servers see only the rows that a batch has used."""
    return False


def widths(shape):
    """The features that go into each layer, the last one's included: four numbers."""
    return [SLOTS * shape["embedding"] + DENSE] + LAYERS * [shape["hidden"]]


def weight_shapes(shape):
    """The table [rows, embedding]; of each layer "fc1.weight" [inputs, outputs] and "fc1.bias"."""
    sizes = {TABLE: (shape["rows"], shape["embedding"])}
    into = widths(shape)
    for layer, (inputs, outputs) in enumerate(zip(into, [*into[1:], CLASSES]), start=1):
        sizes["fc%d.weight" % layer] = (inputs, outputs)
        sizes["fc%d.bias" % layer] = (outputs,)
    return sizes


def flops(shape):
    """Operations to train on a sample; looking up the table's rows costs none."""
    into = widths(shape)
    return operations(sum(map(int.__mul__, into, [*into[1:], CLASSES])))


def start(name, size, random, proof):
    """Where a weight starts: the table and biases at zero, but for a proof."""
    if name.endswith("weight"):
        return uniform(random, size, (3 / size[0]) ** 0.5)
    return uniform(random, size, 0.25) if proof else np.zeros(size, np.float32)


def synthetic_batch(shape, batch_size, random):
    """Dense inputs, slots and labels as trainers.inputs.clicks gives them, a quarter clicked."""
    # A slot's word of rank n comes about 1/n as often as the first one, so that rows recur.
    dense = random.random_sample((batch_size, DENSE)).astype(np.float32)
    words = np.exp(random.random_sample((batch_size, SLOTS)) * np.log(shape["rows"]))
    slots = (words.astype(np.int64) * SLOTS + np.arange(SLOTS)) % shape["rows"]
    labels = (random.random_sample(batch_size) < 0.25).astype(np.int64)
    return dense, slots, labels
