"""Samples for one rank out of a stream of tokens: parts of ids, one after the other."""

import json

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.parts import neighbouring_parts

TYPES = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


def token_batches(flags, rank, world_size, device):
    """Endless batches of tokens and those that follow each, as numpy's arrays."""
    return iter(Tokens(flags.data, flags.shape, flags.batch_size, rank, world_size))


class Tokens:
    """Endless batches of a rank's share of a stream, in an order that the data set's seed gives.

    A rank reads its own parts, each from its beginning in samples of equally many tokens, and what
    is left at its end is none. Each time that all samples have been read they are shuffled anew.
    All frameworks see the same batches.

    A batch is a tuple of arrays: the tokens of N samples, int64 [N, S], and the token that follows
    each of them, likewise.
    """

    def __init__(self, folder, shape, batch_size, rank, world_size):
        """Map the parts into memory.

        Args:
            folder: holds the parts and manifest.json, as reperf writes them.
            shape: context (S) and vocabulary.
            batch_size: N.
            rank: which share of the parts is read.
            world_size: how many ranks share them.

        Raises:
            Refused: the parts cannot be shared evenly, are not whole or have fewer tokens than a
                sample; while iterating: an id is beyond the vocabulary.
        """
        self._shape, self._batch_size, self._rank = shape, batch_size, rank
        paths = neighbouring_parts(folder, rank, world_size)
        self._type, self._seed = described(paths[0].with_name("manifest.json"))
        self._parts = [(path, mapped(path, self._type)) for path in paths]
        length, sizes = shape["context"], [len(ids) for _, ids in self._parts]
        self._ends = np.cumsum([max(0, size - 1) // length for size in sizes])
        if not self._ends[-1]:
            raise Refused(
                "%s: rank %d has parts of up to %d tokens; allowed: %d or more in one of them"
                % (folder, rank, max(sizes), length + 1)
            )

    def __iter__(self):
        samples = self._samples()
        while True:
            rows = np.stack([self._sample(next(samples)) for _ in range(self._batch_size)])
            yield np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])

    def _samples(self):
        """The numbers of the samples, endlessly."""
        turn = 0
        while True:
            random = np.random.RandomState([self._seed, self._rank, turn])
            yield from random.permutation(self._ends[-1])
            turn += 1

    def _sample(self, number):
        """The tokens of a sample, and the one that follows them."""
        length = self._shape["context"]
        at = np.searchsorted(self._ends, number, side="right")
        path, ids = self._parts[at]
        first = length * (number - (self._ends[at - 1] if at else 0))
        found = ids[first : first + length + 1].astype(np.int64)
        if found.max() >= self._shape["vocabulary"]:
            at = first + int(np.argmax(found))
            raise Refused(
                "%s at byte %d: got id %d; allowed: below %d, the vocabulary"
                % (path, at * self._type.itemsize, found.max(), self._shape["vocabulary"])
            )
        return found


def mapped(path, number_type):
    """The ids of a part, which stay on the disk until they are asked for.

    Raises:
        Refused: it has a part of an id.
    """
    size = path.stat().st_size
    if size % number_type.itemsize:
        raise Refused(
            "%s: has %d bytes; allowed: whole ids of %d" % (path, size, number_type.itemsize)
        )
    # Nothing cannot be mapped.
    return np.memmap(str(path), number_type, "r") if size else np.zeros(0, number_type)


def described(manifest, *more):
    """The type of ids, the seed of their order, and what each of `more` takes from the manifest.

    Raises:
        Refused: it says none of these.
    """
    try:
        said = json.loads(manifest.read_text(encoding="utf-8"))
        return (TYPES[said["type"]], said["settings"]["seed"], *(one(said) for one in more))
    except (OSError, ValueError, LookupError, TypeError):
        raise Refused(
            "%s: is no manifest of tokens; allowed: a folder that reperf has converted" % manifest
        ) from None
