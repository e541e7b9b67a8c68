"""Which format a log is of, by its content."""

from collections.abc import Iterable, Iterator
from itertools import chain

from reperf.logs.facts import Refused
from reperf.logs.format import Format, Read
from reperf.logs.formats import formats
from reperf.logs.scan import LONGEST_GAP, find_records

NO_FORMAT = "no known format: no line is one that a format prints for an iteration"


def recognise(pieces: Iterator[bytes]) -> tuple[Format, Iterable[bytes]]:
    """Find a log's format from its content.

    Args:
        pieces: the log, as from reperf.logs.scan.blocks; read as far as its first record.

    Returns:
        The format, and the log from where it matters.

    Raises:
        Refused: no format fits, or several do.
    """
    head = b""
    readers = {name: one.reader() for name, one in formats().items()}
    found: list[Format] = []
    asleep = [one for one in formats().values() if one.signs]
    for block in pieces:
        asleep = [one for one in asleep if not any(sign in block for sign in one.signs)]
        for one in formats().values():
            if one not in asleep and one not in found and _fits(one, block, readers[one.name]):
                found.append(one)
        firm = any(one.yields == 0 for one in found)
        if firm or (found and len(head) + len(block) > LONGEST_GAP):
            return _meant(found), chain((head, block), pieces)
        head = (head + block)[-LONGEST_GAP:]
    if found:
        return _meant(found), (head,)
    raise Refused(NO_FORMAT)


def _meant(found: list[Format]) -> Format:
    """The format that yields least."""
    least = min(one.yields for one in found)
    meant = sorted(one.name for one in found if one.yields == least)
    if len(meant) > 1:
        raise Refused(f"the log fits {' and '.join(meant)}: say which it is with --format")
    return formats()[meant[0]]


def _fits(log_format: Format, block: bytes, read: Read) -> bool:
    if log_format.marker not in block:
        return False
    return next(find_records(block, log_format, read), None) is not None
