"""Pairs of sentences for one rank, out of parts of ids, in batches of sentences of like length.

A batch has so many places for tokens of targets, and as many for those of sources: as many pairs
as fit if all are padded to the longest sentence's length, a multiple of 8.
"""

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.parts import check_ids, described, mapped, neighbouring_parts, shuffled
from trainers.inputs.tokens import type_and_seed

STEP = 8  # lengths to which sentences are padded are multiples of it, or the longest one


def pair_batches(flags, rank, world_size, device):
    return iter(Pairs(flags.data, flags.shape, flags.batch_size, rank, world_size))


class Pairs:
    """Endless batches of a rank's share of the pairs, in an order that the data set's seed gives.

    A rank takes the pairs of its own parts in a random order, a new one each time. Pairs of one
    length wait together until they fill a batch: no pair is left out.

    A batch is a tuple of arrays, all [N, L]: the tokens of sources, and 1 where they are real; what
    predicts each token of the targets: the one before it, the end of sentences for the first; the
    tokens of targets, and 1.0 where they are real. The last one is float32, all others are int64.
    Padding is 0.
    """

    def __init__(self, folder, shape, batch_size, rank, world_size):
        """Map the parts into memory; N is as many pairs of L as fit into `batch_size` places."""
        self._shape, self._batch_size, self._rank = shape, batch_size, rank
        if batch_size < shape["longest"]:
            allowed = f"{shape['longest']} or more, a sentence's longest"
            raise Refused(f"a batch of {batch_size} places; allowed: {allowed}")
        paths = neighbouring_parts(folder, rank, world_size)
        self._type, self._seed = described(folder, "tokens", type_and_seed)
        self._end = described(folder, "tokens", lambda said: said["end"])
        self._parts = [(path, mapped(path, self._type)) for path in paths]
        # Of each pair: its part, where it begins there, and the tokens of both sentences.
        self._places = np.concatenate([self._index(number) for number in range(len(paths))])
        if not len(self._places):
            raise Refused("%s: rank %d has no pairs; allowed: one or more" % (folder, rank))
        self._padded = padded(self._places[:, 2:].max(axis=1), shape["longest"])

    def _index(self, number):
        path, ids = self._parts[number]
        index = path.with_name(path.name + ".idx")
        try:
            found = np.fromfile(str(index), np.int64, sep=" ")
        except OSError as error:
            raise Refused(f"{index}: cannot be read: {error.strerror}") from None
        if len(found) % 3:
            allowed = "lines of offset and two lengths"
            raise Refused(f"{index}: {len(found)} numbers; allowed: {allowed}")
        found = found.reshape(-1, 3)
        found[:, 0] //= self._type.itemsize
        ends = found.sum(axis=1)
        if found[:, 1:].min(initial=1) < 1 or ends.max(initial=0) > len(ids):
            raise Refused("%s: ends before its index; allowed: a whole part" % path)
        longest = found[:, 1:].max(initial=0)
        if longest > self._shape["longest"]:
            allowed = f"up to {self._shape['longest']}, the shape's longest"
            raise Refused(f"{path}: has a sentence of {longest} tokens; allowed: {allowed}")
        return np.insert(found, 0, number, axis=1)

    def __iter__(self):
        waiting = {length: [] for length in np.unique(self._padded).tolist()}
        for number in shuffled(len(self._places), self._seed, self._rank):
            length = int(self._padded[number])
            pairs = waiting[length]
            pairs.append(number)
            if len(pairs) == self._batch_size // length:
                yield self._batch(pairs, length)
                pairs.clear()

    def _batch(self, numbers, length):
        source, target, following = (np.zeros((len(numbers), length), np.int64) for _ in range(3))
        places, vocabulary = self._places[numbers], self._shape["vocabulary"]
        for row, (part, first, sources, targets) in enumerate(places.tolist()):
            path, stored = self._parts[part]
            ids = stored[first : first + sources + targets]
            check_ids(ids, vocabulary, "below %d, the vocabulary" % vocabulary, path, first)
            source[row, :sources] = ids[:sources]
            following[row, :targets] = ids[sources:]
            target[row, 0] = self._end
            target[row, 1:targets] = ids[sources:-1]
        real, weights = (np.arange(length) < places[:, one, None] for one in (2, 3))
        return source, real.astype(np.int64), target, following, weights.astype(np.float32)


def padded(lengths, longest):
    """To which length sentences are padded whose longer one of a pair has so many tokens."""
    return np.minimum(-(-lengths // STEP) * STEP, longest)
