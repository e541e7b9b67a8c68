"""Clicks: the embedded clicks, and how lines of clicks become parts of rows."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from reperf.data.clicks import Clicks
from reperf.data.clicks.lines import CLIPS, LAYOUT, BadLine, rows_of
from reperf.data.conversion import Conversion, Counts, Format, PartWriter
from reperf.data.text_files import PIECE, Pieces
from reperf.errors import ReperfError
from reperf.files import reading, whole_file

Rows = npt.NDArray[np.void]
ROWS = Format[Rows](lambda rows: [rows.tobytes()])
LINES = 100_000
WORDS = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)  # fmt: skip
"""How many different words each slot of the embedded set has.

Source: facebookresearch/dlrm, which counted them in Criteo's Kaggle set (--arch-embedding-size)."""
_SKEW = 1.1
_GAPS = 0.05  # the share of values that are missing
_CLICKED = 0.25


def conversion(settings: Clicks, _format_name: str, _workers: int) -> Conversion[Rows]:
    """Convert a file of clicks to rows.

    Workers read the file in pieces of whole lines; each part holds consecutive pieces.

    Raises:
        ReperfError: the file is refused.
    """
    clicks = settings.source
    lines = Pieces(clicks, settings.parts, f"lines of {LAYOUT}")

    def fill(part: int, records: PartWriter[Rows]) -> Counts:
        samples = clicked = 0
        for number in lines.of_part(part):
            begin, end = lines.edges(number)
            for _, content in lines.between(begin, end):
                try:
                    rows = rows_of(content.encode())
                except BadLine as bad:
                    line = _lines_before(clicks, begin) + bad.line + 1
                    raise ReperfError(f"{clicks}, line {line}: {bad}") from None
                records.append(rows)
                samples += len(rows)
                clicked += int(rows["label"].sum())
        return {"samples": samples, "clicked": clicked}

    return Conversion(ROWS, fill, "no line; allowed: at least one for each part")


def _lines_before(path: Path, offset: int) -> int:
    """How many lines end before an offset of a file; asked only for a refusal."""
    with reading(path), path.open("rb") as stream:
        pieces = (min(PIECE, offset - at) for at in range(0, offset, PIECE))
        return sum(stream.read(size).count(b"\n") for size in pieces)


def make(path: Path) -> None:
    """Write the embedded clicks: made up, with as many words as Criteo's, as unevenly used.

    That the n-th word is used 1/n^1.1 as often as the first is an assumption, as are the gaps and
    the integers. A label follows from hidden weights of the words, so that there is something to
    learn; a quarter of the lines are clicks, as in Criteo's. The lines are always the same.

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
