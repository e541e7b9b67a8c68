"""Skip-gram pairs for one rank out of its parts of words' ids."""

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.parts import check_ids, described, mapped, neighbouring_parts

ID = np.dtype("<u4")
POWER = 0.75
"""Of a word's count: so often it is drawn as a negative. Source: Mikolov et al. (2013)."""
_CHUNK = 1 << 16
"""Ids of which pairs are made at a time; no pair reaches from one chunk to the next."""


def word_batches(flags, rank, world_size, device):
    """Endless batches of a rank's skip-gram pairs, in the order of the text.

    A word makes a pair with each of its neighbours in the line, up to a distance that is drawn for
    it anew each time, from 1 to `window`; distances and negatives come from the data set's seed. A
    batch is the centre words of N pairs and their contexts, int64 [N]; each one's negatives, int64
    [N, K]; and whether each pair is the first of its centre word, bool [N].
    """
    shape = flags.shape
    paths = neighbouring_parts(flags.data, rank, world_size)
    end, seed = described(
        flags.data, "words", lambda said: (int(said["vocabulary"]), int(said["settings"]["seed"]))
    )
    if end > shape["vocabulary"]:
        allowed = f"up to {shape['vocabulary']}, the vocabulary"
        raise Refused(f"{flags.data}: has {end} words; allowed: {allowed}")
    parts = [(path, mapped(path, ID)) for path in paths]
    drawn = _negatives(paths[0].with_name("vocab.txt"), end)
    random = np.random.RandomState([seed, rank])
    chunks = _chunks(parts, end, shape["window"], random)
    size, rows = flags.batch_size, next(chunks)
    at = 0
    while True:
        while len(rows) - at < size:
            rows, at = np.concatenate([rows[at:], next(chunks)]), 0
        batch = rows[at : at + size]
        at += size
        places = random.random_sample((size, shape["negatives"]))
        negatives = np.searchsorted(drawn, places, side="right")
        centres, contexts, firsts = batch.T
        yield (
            np.ascontiguousarray(centres),
            np.ascontiguousarray(contexts),
            negatives.astype(np.int64),
            firsts.astype(bool),
        )


def pairs(ids, end, distances):
    """The skip-gram pairs of ids, [n], among the words of a line, which `end` ends: int64 [pairs,
    3], centre word, neighbour, and 1 for the first pair of a place, else 0.
    """
    lines = np.cumsum(ids == end)
    words = ids != end
    ids, lines, distances = ids[words], lines[words], distances[words]
    farthest = int(distances.max()) if len(distances) else 0
    steps = np.array([step for step in range(-farthest, farthest + 1) if step], np.int64)
    others = np.arange(len(ids))[:, None] + steps
    inside = np.clip(others, 0, max(0, len(ids) - 1))
    near = (others == inside) & (np.abs(steps) <= distances[:, None])
    if len(ids):
        near &= lines[inside] == lines[:, None]
    centres, which = np.nonzero(near)
    firsts = np.append(True, centres[1:] != centres[:-1])[: len(centres)]
    return np.stack([ids[centres], ids[others[centres, which]], firsts], 1).astype(np.int64)


def _chunks(parts, end, window, random):
    """The pairs of one chunk of the parts after the other, endlessly."""
    while True:
        found = 0
        for path, ids in parts:
            for first in range(0, len(ids), _CHUNK):
                chunk = ids[first : first + _CHUNK]
                check_ids(chunk, end + 1, "up to %d" % end, path, first)
                distances = random.randint(1, window + 1, size=len(chunk))
                rows = pairs(chunk.astype(np.int64), end, distances)
                found += len(rows)
                yield rows
        if not found:
            raise Refused("%s: no line with two words; allowed: one in each share" % parts[0][0])


def _negatives(vocabulary, size):
    """What each word's share of the negatives ends at, of an interval from 0 to 1."""
    try:
        lines = vocabulary.read_text(encoding="utf-8").splitlines()
        counts = np.array([int(line.rpartition(" ")[2]) for line in lines], np.float64)
    except (OSError, ValueError):
        counts = np.zeros(0)
    if len(counts) != size or counts.min() < 1:
        raise Refused("%s: is no vocabulary of %d words and their counts" % (vocabulary, size))
    ends = np.cumsum(counts**POWER)
    return ends / ends[-1]
