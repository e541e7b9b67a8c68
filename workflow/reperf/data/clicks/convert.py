"""Clicks: the embedded clicks, and how lines of Criteo's train.txt become parts of rows.

A row is 40 little-endian numbers of four bytes: the label, uint32; 13 dense inputs, float32; and
for 26 slots the CRC-32, uint32, of the column's number and the word, of which trainers take the
remainder. Source: FleetX's CTR example, which divides each integer by a constant, takes 0 for what
is missing, and hash(str(column) + word) % 1000001 for a slot's row; its first word is in column
14. Python salts hash() anew in every process; a CRC is the same everywhere.
"""

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reperf.data.clicks import Clicks
from reperf.data.conversion import Conversion, Counts, Format, PartWriter
from reperf.data.text_files import PIECE, Pieces
from reperf.errors import ReperfError
from reperf.files import reading, whole_file

Rows = npt.NDArray[np.void]
ROWS = Format[Rows](lambda rows: [rows.tobytes()])
ROW = np.dtype([("label", "<u4"), ("dense", "<f4", 13), ("slots", "<u4", 26)])
CLIPS = np.array([20, 600, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50], np.float64)
"""What each integer is divided by, about its 95 % quantile in Criteo's set.

Source: PaddlePaddle's deep_fm and ctr examples, and FleetX's."""
COLUMNS = 40
LAYOUT = "0 or 1, 13 integers and 26 words of 8 hexadecimal digits, tabs between"

_FIRST_WORD, _DIGITS, _LONGEST = 14, 8, 18  # of the last an int64 holds any
_LABEL = rb"[01]", "0 or 1"
_INTEGER = rb"(?:-?\d{1,%d})?" % _LONGEST, f"a whole number of up to {_LONGEST} digits, or nothing"
_WORD = (
    rb"(?:[0-9a-f]{%d})?" % _DIGITS,
    f"{_DIGITS} hexadecimal digits, 0 to 9 and a to f, or nothing",
)
_GOOD = re.compile(
    rb"%b(?:\t%b){13}(?:\t%b){26}" % tuple(pattern for pattern, _ in (_LABEL, _INTEGER, _WORD))
)
_COLUMN_CRCS = [zlib.crc32(b"%d" % column) for column in range(_FIRST_WORD, COLUMNS)]
"""A word's CRC goes on from that of its column's number."""

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
                except ValueError as error:
                    line, fault = error.args
                    line += _lines_before(clicks, begin) + 1
                    raise ReperfError(f"{clicks}, line {line}: {fault}") from None
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


def rows_of(text: bytes) -> npt.NDArray[Any]:
    """Rows of whole lines: an array of ROW, one a line.

    Raises:
        ValueError: the number of the first line with a fault, from 0, and the fault.
    """
    lines = text.removesuffix(b"\n").split(b"\n")
    rows = np.empty(len(lines), ROW)
    labels, integers, slots = [], [], []
    for number, line in enumerate(lines):
        fields = line.split(b"\t")
        if not _GOOD.fullmatch(line):
            raise ValueError(number, _fault_in(fields))
        labels.append(int(fields[0]))
        integers.append([int(field or 0) for field in fields[1:_FIRST_WORD]])
        slots.append(list(map(zlib.crc32, fields[_FIRST_WORD:], _COLUMN_CRCS)))
    rows["label"] = labels
    rows["dense"] = np.array(integers, np.int64) / CLIPS
    rows["slots"] = slots
    return rows


def _fault_in(fields: Sequence[bytes]) -> str:
    """The first fault of a line."""
    if len(fields) != COLUMNS:
        return f"{len(fields)} columns; allowed: {COLUMNS}, {LAYOUT}"
    kinds = [_LABEL] + [_INTEGER] * (_FIRST_WORD - 1) + [_WORD] * len(WORDS)
    column, got, allowed = next(
        (column, field.decode("utf-8", "replace"), allowed)
        for column, (field, (pattern, allowed)) in enumerate(zip(fields, kinds, strict=True), 1)
        if not re.fullmatch(pattern, field)
    )
    shown = got if len(got) <= 40 else got[:40] + "..."
    return f"column {column}: got {shown!r}; allowed: {allowed}"


def make(path: Path) -> None:
    """Write the embedded clicks: made up, with as many words as Criteo's, as unevenly used.

    That the n-th word is used 1/n^1.1 as often as the first is an assumption, as are the gaps and
    the integers. A label follows from hidden weights of the words, so that there is something to
    learn; a quarter of the lines are clicks, as in Criteo's. The lines are always the same.
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
