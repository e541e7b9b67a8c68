"""Which format a log is of, by its content."""

from collections.abc import Iterable, Iterator
from itertools import chain

from reperf.logs.facts import Refused
from reperf.logs.format import Format, Read
from reperf.logs.formats import formats
from reperf.logs.scan import LONGEST_GAP, find_records

NO_FORMAT = "no known format: no line is one that a format prints for an iteration"
_NO_TEXT = {
    b"\x1f\x8b": "it is compressed by gzip: unpack it first",
    b"BZh": "it is compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "it is compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "it is compressed by zstd: unpack it first",
    b"\xff\xfe": "it is written in UTF-16: convert it to UTF-8 first",
    b"\xfe\xff": "it is written in UTF-16: convert it to UTF-8 first",
}
"""What is wrong with a file that begins so."""
NOT_READ = (NO_FORMAT, *_NO_TEXT.values())
"""The refusals of a file in which nothing was found that is a log's."""


def recognise(pieces: Iterator[bytes]) -> tuple[Format, Iterable[bytes]]:
    """Find a log's format from its content.

    Args:
        pieces: the log, as from reperf.logs.scan.blocks; read as far as its first record.

    Returns:
        The format, and the log from where it matters.

    Raises:
        Refused: it is no text, no format fits, or several do.
    """
    head = b""
    readers: dict[str, Read] = {}
    found: list[Format] = []
    asleep = [one for one in formats().values() if one.signs]
    for number, block in enumerate(pieces):
        if number == 0:
            _check_text(block)
        asleep = [one for one in asleep if not any(sign in block for sign in one.signs)]
        for one in formats().values():
            if one.marker not in block or one in asleep or one in found:
                continue
            read = readers.setdefault(one.name, one.reader())
            if next(find_records(block, one, read), None) is not None:
                found.append(one)
        firm = any(one.yields == 0 for one in found)
        if firm or (found and len(head) + len(block) > LONGEST_GAP):
            return _meant(found), chain((head, block), pieces)
        head = (head + block)[-LONGEST_GAP:]
    if found:
        return _meant(found), (head,)
    raise Refused(NO_FORMAT)


def _check_text(start: bytes) -> None:
    for sign, reason in _NO_TEXT.items():
        if start.startswith(sign):
            raise Refused(reason)


def _meant(found: list[Format]) -> Format:
    """The format that yields least."""
    least = min(one.yields for one in found)
    meant = sorted(one.name for one in found if one.yields == least)
    if len(meant) > 1:
        raise Refused(f"the log fits {' and '.join(meant)}: say which it is with --format")
    return formats()[meant[0]]
