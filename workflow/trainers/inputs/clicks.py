"""Clicks for one rank, out of its parts of rows."""

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.parts import described, neighbouring_parts, shuffled

DENSE = 13
SLOTS = 26
_ROW = 1 + DENSE + SLOTS  # numbers of four bytes: label, inputs, slots


class Clicks:
    """Endless batches of a rank's share of clicks, in an order that the data set's seed gives.

    A rank reads its own parts, each from its beginning in batches of neighbouring rows, and what is
    left at its end makes none. After all batches have been read, they are shuffled again. A
    batch is dense inputs, float32 [N, 13], the rows of the table that the 26 slots stand for, int64
    [N, 26], and whether it was clicked, int64 [N].
    """

    def __init__(self, flags, rank, world_size):
        self._rank, self._batch_size, self._rows = rank, flags.batch_size, flags.shape["rows"]
        paths = neighbouring_parts(flags.data, rank, world_size)
        self._seed = described(flags.data, "clicks", lambda said: said["settings"]["seed"])
        self._parts = [_mapped(path) for path in paths]
        self._ends = np.cumsum([len(part) // self._batch_size for part in self._parts])
        if not self._ends[-1]:
            most = max(map(len, self._parts))
            allowed = f"{self._batch_size} or more, a batch, in one of them"
            raise Refused(
                f"{flags.data}: rank {rank} has parts of up to {most} rows; allowed: {allowed}"
            )

    def __iter__(self):
        return map(self._batch, shuffled(self._ends[-1], self._seed, self._rank))

    def _batch(self, number):
        part = np.searchsorted(self._ends, number, side="right")
        first = (number - (self._ends[part - 1] if part else 0)) * self._batch_size
        rows = np.ascontiguousarray(self._parts[part][first : first + self._batch_size])
        dense = np.ascontiguousarray(rows[:, 1 : 1 + DENSE]).view("<f4")
        slots = (rows[:, 1 + DENSE :] % np.uint32(self._rows)).astype(np.int64)
        return dense, slots, rows[:, 0].astype(np.int64)


def click_batches(flags, rank, world_size, device):
    return iter(Clicks(flags, rank, world_size))


def _mapped(path):
    size = path.stat().st_size
    if not size or size % (4 * _ROW):
        raise Refused("%s: has %d bytes; allowed: whole rows of %d" % (path, size, 4 * _ROW))
    return np.memmap(str(path), "<u4", "r").reshape(-1, _ROW)
