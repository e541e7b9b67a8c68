"""Samples for one rank out of a stream of tokens: parts of ids, one after the other."""

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.parts import check_ids, described, mapped, neighbouring_parts, shuffled

TYPES = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


def token_batches(flags, rank, world_size, device):
    return iter(Tokens(flags.data, flags.shape, flags.batch_size, rank, world_size))


class Tokens:
    """Endless batches of a rank's share of a stream, in an order that the data set's seed gives.

    A rank reads its own parts, each from its beginning in samples of equally many tokens, and what
    is left at its end is none. Each time that all samples have been read they are shuffled anew.
    A batch is the tokens of N samples, int64 [N, S], and the token that follows each, likewise.
    """

    def __init__(self, folder, shape, batch_size, rank, world_size):
        self._shape, self._batch_size, self._rank = shape, batch_size, rank
        paths = neighbouring_parts(folder, rank, world_size)
        number_type, self._seed = described(folder, "tokens", type_and_seed)
        self._parts = [(path, mapped(path, number_type)) for path in paths]
        length, sizes = shape["context"], [len(ids) for _, ids in self._parts]
        self._ends = np.cumsum([max(0, size - 1) // length for size in sizes])
        if not self._ends[-1]:
            what = f"{folder}: rank {rank} has parts of up to {max(sizes)} tokens"
            raise Refused(f"{what}; allowed: {length + 1} or more in one of them")

    def __iter__(self):
        samples = shuffled(self._ends[-1], self._seed, self._rank)
        while True:
            rows = np.stack([self._sample(next(samples)) for _ in range(self._batch_size)])
            yield np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])

    def _sample(self, number):
        """The tokens of a sample, and the one that follows them."""
        length, vocabulary = self._shape["context"], self._shape["vocabulary"]
        part = np.searchsorted(self._ends, number, side="right")
        path, ids = self._parts[part]
        first = length * (number - (self._ends[part - 1] if part else 0))
        found = ids[first : first + length + 1]
        check_ids(found, vocabulary, "below %d, the vocabulary" % vocabulary, path, first)
        return found.astype(np.int64)


def type_and_seed(said):
    """The type of ids, and the seed of their order, as a manifest says them."""
    return TYPES[said["type"]], said["settings"]["seed"]
