"""Which format a log is of, by its content."""

from collections.abc import Iterable, Iterator
from itertools import chain
from tempfile import SpooledTemporaryFile

from reperf.logs.facts import Refused
from reperf.logs.format import Format, Read
from reperf.logs.formats import formats
from reperf.logs.scan import LONGEST_GAP, find_records, is_one_long_line

NO_FORMAT = "no known format: no line is one that a format prints for an iteration"
_EMPTY = "the file is empty"
_UTF_16 = "it is written in UTF-16: convert it to UTF-8 first"
_LETTERS = 64
"""How many bytes at its beginning show the encoding of a text."""
_NO_TEXT = {
    b"\x1f\x8b": "it is compressed by gzip: unpack it first",
    b"BZh": "it is compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "it is compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "it is compressed by zstd: unpack it first",
    b"PK\x03\x04": "it is a zip archive: give it a name that ends in .zip",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
"""What is wrong with a file that begins so."""
LONGEST_HEAD = 1 << 28
"""Bytes: a log whose first record stands behind more of other text is refused."""
_OF_MLPERF = b":::ML"
_NO_TRAINING = (
    f"{NO_FORMAT.partition(': ')[0]}: its MLPerf lines stamp no stretch of training whose samples a "
    "format can count"
)
NOT_READ = ("unknown-format", "no-text")
"""The codes of the refusals of a file in which nothing was found that is a log's."""


def recognise(pieces: Iterator[bytes]) -> tuple[Format, Iterable[bytes]]:
    """Find a log's format from its content.

    Args:
        pieces: the log, as from reperf.logs.scan.blocks; read as far as its first record.

    Returns:
        The format, and the log from its beginning.

    Raises:
        Refused: it is no text, no format fits, several do, or the log begins with more than
            LONGEST_HEAD bytes of other text.
    """
    head = _Head()
    readers: dict[str, Read] = {}
    found: list[Format] = []
    of_mlperf = False
    asleep = [one for one in formats().values() if one.signs]
    for number, block in enumerate(pieces):
        if number == 0:
            _check_text(block)
        if is_one_long_line(block):
            head.add(block)
            continue
        of_mlperf = of_mlperf or _OF_MLPERF in block
        asleep = [one for one in asleep if not any(sign in block for sign in one.signs)]
        firm = False
        for one in sorted(formats().values(), key=lambda one: one.yields):
            if firm and one.yields:
                break  # what yields is not meant
            if one.marker not in block or one in asleep or one in found:
                continue
            read = readers.setdefault(one.name, one.reader())
            if next(find_records(block, one, read), None) is not None:
                found.append(one)
                firm = firm or not one.yields
        head.add(block)
        if firm or (found and head.size > LONGEST_GAP):
            return _meant(found), chain(head.pieces(), pieces)
    if not head.size:
        raise Refused("no-text", _EMPTY)
    if found:
        return _meant(found), head.pieces()
    raise Refused("unknown-format", _NO_TRAINING if of_mlperf else NO_FORMAT)


class _Head:
    """The beginning of a log of which the format is not known yet: a file holds what is long."""

    def __init__(self) -> None:
        self.size = 0
        self._file = SpooledTemporaryFile(max_size=LONGEST_GAP)  # noqa: SIM115 - it goes with this
        self._sizes: list[int] = []

    def add(self, block: bytes) -> None:
        """Take what follows, until it is too much to be kept."""
        self.size += len(block)
        if self.size <= LONGEST_HEAD:
            self._file.write(block)
            self._sizes.append(len(block))

    def pieces(self) -> Iterator[bytes]:
        """All of it.

        Raises:
            Refused: it was too much to be kept.
        """
        if self.size > LONGEST_HEAD:
            raise Refused(
                "too-many-lines",
                f"more than {LONGEST_HEAD} bytes of other text stand before its records",
            )
        self._file.seek(0)
        return map(self._file.read, self._sizes)


def of_text(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a log whose format is known, once its beginning shows that it is text.

    Raises:
        Refused: it is compressed, or in another encoding.
    """
    first = next(pieces, b"")
    _check_text(first)
    return chain([first], pieces)


def _check_text(start: bytes) -> None:
    for sign, reason in _NO_TEXT.items():
        if start.startswith(sign):
            raise Refused("no-text", reason)
    for odd in (0, 1):  # without the mark that says so
        if len(start) > _LETTERS and set(start[odd:_LETTERS:2]) == {0} != set(start[:_LETTERS]):
            raise Refused("no-text", _UTF_16)


def _meant(found: list[Format]) -> Format:
    """The format that yields least."""
    least = min(one.yields for one in found)
    meant = sorted(one.name for one in found if one.yields == least)
    if len(meant) > 1:
        raise Refused(
            "several-formats", f"the log fits {' and '.join(meant)}: say which it is with --format"
        )
    return formats()[meant[0]]
