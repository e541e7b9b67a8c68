"""A trainer of a small AlexNet without dropout that reads its samples by four, cut into batches.

python in_pieces.py program weights.npz flags...: the first rank leaves its weights there.
"""

import itertools
import os
import runpy
import sys

import numpy as np
from trainers.contract import driver, weights
from trainers.recipes import alexnet, plain

AT_ONCE = 4


def cut(flags, reader, readers, device):
    """The same samples for batches of any size that divides AT_ONCE."""
    for number in itertools.count():
        random = np.random.RandomState([reader, number])
        read = alexnet.synthetic_batch(flags.shape, AT_ONCE, random)
        for at in range(0, AT_ONCE, flags.batch_size):
            yield tuple(array[at : at + flags.batch_size] for array in read)


def digest(watched):
    if os.environ.get("RANK") == "0":
        np.savez(kept, **dict(watched._read()))
    return "equal"


_, program, kept, *flags = sys.argv
plain.HIDDEN, alexnet.DROPOUT = 64, 0.0
driver.Work.batches = property(lambda work: cut)
weights.Watched.digest = digest
sys.argv = [program, *flags]
runpy.run_path(program, run_name="__main__")
