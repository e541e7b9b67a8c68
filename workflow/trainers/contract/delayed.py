"""In which order the stages of a pipeline compute that never waits until it is empty.

One batch forward, one backward: a stage updates its weights after each batch of its replicas, while
other batches are on their way. Each goes backward through the weights that it went forward by. The
order does not depend on timing. Source: Narayanan et al., PipeDream (2019).
"""

import numpy as np


class Turns:
    """What one replica of a stage computes: its batches, by their numbers among all.

    Batch m goes to replica m mod R of a stage that has R.
    """

    def __init__(self, place, iterations):
        self._first = place.pipeline[0]
        self.replicas, self._replica = place.pipeline[place.stage], place.replica
        self.depth = depth(place.pipeline, place.stage)
        """How many batches are forward of a batch that goes backward."""
        self.batches = rounds(place.pipeline, iterations) * self._first // self.replicas
        """How many it has in all."""
        self.share = self.replicas / self._first
        """By how much smaller its rate is for its updates, of which it has so many more a round."""

    def batch(self, turn):
        """The number among all of one of its batches, which it counts from 0."""
        return turn * self.replicas + self._replica

    def until(self, iteration):
        """How many of its batches belong to the iterations up to one, counted from 1."""
        others = self._first * iteration - self._replica
        return min(self.batches, -(-others // self.replicas))


def depth(pipeline, stage):
    """How many batches a replica of a stage sends forward before the first one comes backward."""
    return (sum(pipeline[stage:]) - 1) // pipeline[stage]


def rounds(pipeline, iterations):
    """Batches for each replica of the first stage, so that no iteration lacks those after it."""
    # The last ones have nothing after them and are quicker. They make as many batches as every
    # stage can share equally.
    first, every = pipeline[0], int(np.lcm.reduce(pipeline))
    ahead = max(depth(pipeline, stage) * count for stage, count in enumerate(pipeline))
    return -(-(iterations * first + ahead) // every) * every // first
