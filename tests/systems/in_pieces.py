"""One rank of kept_ranks.py that reads AlexNet's samples by four, cut into batches; no dropout."""

import itertools

import kept_ranks
import numpy as np
from trainers.contract import driver
from trainers.recipes import alexnet

AT_ONCE = 4


def cut(flags, reader, readers, device):
    """The same samples for batches of any size that divides AT_ONCE."""
    for number in itertools.count():
        random = np.random.RandomState([reader, number])
        read = alexnet.synthetic_batch(flags.shape, AT_ONCE, random)
        for at in range(0, AT_ONCE, flags.batch_size):
            yield tuple(array[at : at + flags.batch_size] for array in read)


if __name__ == "__main__":
    alexnet.DROPOUT = 0.0
    driver.Work.batches = property(lambda work: cut)
    kept_ranks.main()
