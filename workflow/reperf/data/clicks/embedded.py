"""The embedded clicks: made up, with as many different words as Criteo's, as unevenly used.

Source of the 26 numbers of different words: facebookresearch/dlrm, which counted them in Criteo's
Kaggle set (--arch-embedding-size). That the n-th word is used 1/n^1.1 as often as the first is an
assumption, as are the gaps and the integers. A label follows from hidden weights of the words, so
that there is something to learn; a quarter of the lines are clicks, as in Criteo's.
"""

from pathlib import Path

import numpy as np

from reperf.data.clicks.lines import CLIPS
from reperf.files import whole_file

LINES = 100_000
WORDS = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)  # fmt: skip
"""How many different words each slot has."""
_SKEW = 1.1
_GAPS = 0.05  # the share of values that are missing
_CLICKED = 0.25


def make(path: Path) -> None:
    """Write the lines, always the same.

    Raises:
        ReperfError: the file cannot be written.
    """
    random = np.random.RandomState(1)
    words = _words(random.random_sample((LINES, len(WORDS))))
    integers = (CLIPS * random.standard_exponential((LINES, len(CLIPS))) / 3).astype(np.int64)
    integers[:, 1] -= 3  # the only one that can be negative
    # A word's weight is what two of its digits say, and so the same wherever it stands.
    logits = ((words >> np.uint32(12)) % np.uint32(256) / 128.0 - 1.0).sum(axis=1)
    threshold = np.quantile(logits, 1 - _CLICKED)
    labels = random.random_sample(LINES) < 1 / (1 + np.exp(2 * (threshold - logits)))
    shown = [[f"{label:d}" for label in labels]]
    shown += [[str(number) for number in column] for column in integers.T.tolist()]
    shown += [[f"{word:08x}" for word in column] for column in words.T.tolist()]
    for column in shown[1:]:
        for line in np.flatnonzero(random.random_sample(LINES) < _GAPS).tolist():
            column[line] = ""
    with whole_file(path) as stream:
        stream.writelines("\t".join(line) + "\n" for line in zip(*shown, strict=True))


def _words(shares: np.ndarray) -> np.ndarray:
    """The word that each line has in each slot, uint32, from numbers that are spread evenly."""
    most = np.array(WORDS, np.float64)
    power = 1 - _SKEW
    rank = ((most + 1) ** power * shares + (1 - shares)) ** (1 / power)
    number = np.minimum(rank, most).astype(np.uint32) * np.uint32(len(WORDS))
    number += np.arange(len(WORDS), dtype=np.uint32)
    # Multiplied by odd numbers, different ones stay different.
    number *= np.uint32(0x9E3779B1)
    number ^= number >> np.uint32(15)
    return np.asarray(number * np.uint32(0x85EBCA77))
