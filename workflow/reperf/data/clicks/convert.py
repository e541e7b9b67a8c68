"""Clicks: the embedded clicks, and how lines of Criteo's train.txt become parts of rows.

A row is 40 little-endian numbers of four bytes: the label, uint32; 13 dense inputs, float32; and
for 26 slots the CRC-32, uint32, of the column's number and the word, of which trainers take the
remainder. Source: FleetX's CTR example, which divides each integer by a constant, takes 0 for what
is missing, and hash(str(column) + word) % 1000001 for a slot's row; its first word is in column
14. Python salts hash() anew in every process; a CRC is the same everywhere.
"""

import zlib
from dataclasses import dataclass
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
_TAB, _LINE, _MINUS, _ZERO = b"\t\n-0"

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
    if not text.endswith(b"\n"):
        text += b"\n"
    # Fields are looked up beyond the end of the last line: zeros stand there.
    content = np.frombuffer(text + bytes(_LONGEST + 1), np.uint8)
    ends = np.flatnonzero((content == _TAB) | (content == _LINE))
    _check_columns(content[ends])
    begins = np.concatenate([[0], ends[:-1] + 1]).reshape(-1, COLUMNS)
    fields = _Fields(text, content, begins, ends.reshape(-1, COLUMNS) - begins)
    rows = np.empty(len(begins), ROW)
    rows["label"] = fields.labels()
    rows["dense"] = fields.integers() / CLIPS
    rows["slots"] = fields.slots()
    return rows


def _check_columns(ends: npt.NDArray[Any]) -> None:
    """Refuse lines of more or fewer columns."""
    lines = np.flatnonzero(ends == _LINE)
    counts = np.diff(lines, prepend=-1)
    wrong = np.flatnonzero(counts != COLUMNS)
    if len(wrong):
        line = int(wrong[0])
        raise ValueError(line, f"{counts[line]} columns; allowed: {COLUMNS}, {LAYOUT}")


@dataclass(frozen=True)
class _Fields:
    """Where each field of each line begins in a text, and its length: arrays [lines, 40]."""

    text: bytes
    content: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def labels(self) -> npt.NDArray[Any]:
        labels = self.content[self.begins[:, :1]] - np.uint8(_ZERO)
        self._check((labels <= 1) & (self.lengths[:, :1] == 1), 0, "0 or 1")
        return np.asarray(labels[:, 0])

    def integers(self) -> npt.NDArray[Any]:
        begins, lengths = (places[:, 1:_FIRST_WORD] for places in (self.begins, self.lengths))
        negative = (self.content[begins] == _MINUS) & (lengths > 0)
        begins, lengths = begins + negative, lengths - negative
        good = (lengths > 0) | ~negative
        good &= lengths <= _LONGEST
        numbers = np.zeros(lengths.shape, np.int64)
        for place in range(min(_LONGEST, lengths.max())):
            digit = self.content[begins + place] - np.uint8(_ZERO)
            within = place < lengths
            good &= (digit <= 9) | ~within
            numbers = np.where(within, 10 * numbers + digit, numbers)
        self._check(good, 1, f"a whole number of up to {_LONGEST} digits, or nothing")
        return np.where(negative, -numbers, numbers)

    def slots(self) -> npt.NDArray[Any]:
        begins, lengths = self.begins[:, _FIRST_WORD:], self.lengths[:, _FIRST_WORD:]
        there = lengths == _DIGITS
        # The eight bytes from each byte on, taken at once, then two at a time.
        eights = np.ndarray(len(self.content) - 7, "<u8", self.content, strides=(1,))
        pairs = eights[begins].view("<u2").reshape(*begins.shape, _DIGITS // 2)
        good = there & _ARE_DIGITS[pairs].all(axis=2) | (lengths == 0)
        allowed = f"{_DIGITS} hexadecimal digits, 0 to 9 and a to f, or nothing"
        self._check(good, _FIRST_WORD, allowed)
        crcs = _WITH_ZEROS ^ _CHANGED_BY[0][pairs[:, :, 0]]
        for place in range(1, _DIGITS // 2):
            crcs ^= _CHANGED_BY[place][pairs[:, :, place]]
        return np.where(there, crcs, _OF_NOTHING)

    def _check(self, good: npt.NDArray[Any], first: int, allowed: str) -> None:
        """Refuse the first field that is not good, in the columns from `first` on."""
        if good.all():
            return
        line, column = np.argwhere(~good)[0].tolist()
        column += first
        begin = self.begins[line, column]
        field = self.text[begin : begin + self.lengths[line, column]].decode("utf-8", "replace")
        shown = field if len(field) <= 40 else field[:40] + "..."
        raise ValueError(line, f"column {column + 1}: got {shown!r}; allowed: {allowed}")


def _crcs_with(word: bytes) -> npt.NDArray[Any]:
    """The CRC of each slot's column number with a word: uint32 [26]."""
    columns = range(_FIRST_WORD, COLUMNS)
    return np.array([zlib.crc32(str(column).encode() + word) for column in columns], np.uint32)


def _changed_by(place: int) -> npt.NDArray[Any]:
    """By what the CRC of a word of zero bytes changes with the byte at a place: uint32 [256]."""
    zeros = bytes(_DIGITS)
    words = (zeros[:place] + bytes([byte]) + zeros[place + 1 :] for byte in range(256))
    return np.array([zlib.crc32(word) ^ zlib.crc32(zeros) for word in words], np.uint32)


_OF_NOTHING = _crcs_with(b"")
_WITH_ZEROS = _crcs_with(bytes(_DIGITS))
_CHANGED_BY = [
    np.bitwise_xor.outer(_changed_by(place + 1), _changed_by(place)).ravel()
    for place in range(0, _DIGITS, 2)
]
"""CRCs are linear: what each byte changes, and here each pair of them, is added by xor."""
_IS_DIGIT = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdef", np.uint8))
_ARE_DIGITS = np.logical_and.outer(_IS_DIGIT, _IS_DIGIT).ravel()


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
