"""Lines of Criteo's train.txt as rows of numbers, thousands of them at a time.

A row is 40 little-endian numbers of four bytes: the label, uint32; 13 dense inputs, float32; and
for 26 slots the CRC-32, uint32, of the column's number and the word, of which trainers take the
remainder. Source: FleetX's CTR example, which divides each integer by a constant, takes 0 for what
is missing, and hash(str(column) + word) % 1000001 for a slot's row; its first word is in column
14. Python salts hash() anew in every process; a CRC is the same everywhere.
"""

import zlib

import numpy as np

ROW = np.dtype([("label", "<u4"), ("dense", "<f4", 13), ("slots", "<u4", 26)])
CLIPS = np.array([20, 600, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50], np.float64)
"""What each integer is divided by, about its 95 % quantile in Criteo's set.

Source: PaddlePaddle's deep_fm and ctr examples, and FleetX's."""
COLUMNS = 40
LAYOUT = "0 or 1, 13 integers and 26 words of 8 hexadecimal digits, tabs between"

_FIRST_WORD, _DIGITS, _LONGEST = 14, 8, 18  # of the last an int64 holds any
_TAB, _LINE, _MINUS, _ZERO = b"\t\n-0"


class BadLine(ValueError):
    """A line that cannot be read.

    Args:
        line: its number in the text, from 0.
        fault: what is wrong with it, and what is allowed.
    """

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(fault)
        self.line = line


def rows_of(text: bytes) -> np.ndarray:
    """Rows of whole lines.

    Returns:
        An array of ROW, one a line.

    Raises:
        BadLine: the first line with a fault of the first kind that there is.
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


def _check_columns(ends: np.ndarray) -> None:
    """Refuse lines of more or fewer columns."""
    lines = np.flatnonzero(ends == _LINE)
    counts = np.diff(lines, prepend=-1)
    wrong = np.flatnonzero(counts != COLUMNS)
    if len(wrong):
        line = int(wrong[0])
        raise BadLine(line, f"{counts[line]} columns; allowed: {COLUMNS}, {LAYOUT}")


class _Fields:
    """Where each field of each line begins in a text, and its length: arrays [lines, 40]."""

    def __init__(
        self, text: bytes, content: np.ndarray, begins: np.ndarray, lengths: np.ndarray
    ) -> None:
        self._text, self._content, self._begins, self._lengths = text, content, begins, lengths

    def labels(self) -> np.ndarray:
        labels = self._content[self._begins[:, :1]] - np.uint8(_ZERO)
        self._check((labels <= 1) & (self._lengths[:, :1] == 1), 0, "0 or 1")
        return np.asarray(labels[:, 0])

    def integers(self) -> np.ndarray:
        begins, lengths = (places[:, 1:_FIRST_WORD] for places in (self._begins, self._lengths))
        negative = (self._content[begins] == _MINUS) & (lengths > 0)
        begins, lengths = begins + negative, lengths - negative
        good = (lengths > 0) | ~negative
        good &= lengths <= _LONGEST
        numbers = np.zeros(lengths.shape, np.int64)
        for place in range(min(_LONGEST, lengths.max())):
            digit = self._content[begins + place] - np.uint8(_ZERO)
            within = place < lengths
            good &= (digit <= 9) | ~within
            numbers = np.where(within, 10 * numbers + digit, numbers)
        self._check(good, 1, f"a whole number of up to {_LONGEST} digits, or nothing")
        return np.where(negative, -numbers, numbers)

    def slots(self) -> np.ndarray:
        begins, lengths = self._begins[:, _FIRST_WORD:], self._lengths[:, _FIRST_WORD:]
        there = lengths == _DIGITS
        # The eight bytes from each byte on, taken at once, then two at a time.
        eights = np.ndarray(len(self._content) - 7, "<u8", self._content, strides=(1,))
        pairs = eights[begins].view("<u2").reshape(*begins.shape, _DIGITS // 2)
        good = there & _ARE_DIGITS[pairs].all(axis=2) | (lengths == 0)
        allowed = f"{_DIGITS} hexadecimal digits, 0 to 9 and a to f, or nothing"
        self._check(good, _FIRST_WORD, allowed)
        crcs = _WITH_ZEROS ^ _CHANGED_BY[0][pairs[:, :, 0]]
        for place in range(1, _DIGITS // 2):
            crcs ^= _CHANGED_BY[place][pairs[:, :, place]]
        return np.where(there, crcs, _OF_NOTHING)

    def _check(self, good: np.ndarray, first: int, allowed: str) -> None:
        """Refuse the first field that is not good, in the columns from `first` on."""
        if good.all():
            return
        line, column = np.argwhere(~good)[0].tolist()
        column += first
        begin = self._begins[line, column]
        field = self._text[begin : begin + self._lengths[line, column]].decode("utf-8", "replace")
        shown = field if len(field) <= 40 else field[:40] + "..."
        raise BadLine(line, f"column {column + 1}: got {shown!r}; allowed: {allowed}")


def _crcs_with(word: bytes) -> np.ndarray:
    """The CRC of each slot's column number with a word: uint32 [26]."""
    columns = range(_FIRST_WORD, COLUMNS)
    return np.array([zlib.crc32(str(column).encode() + word) for column in columns], np.uint32)


def _changed_by(place: int) -> np.ndarray:
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
