"""Which format a log is of, by its content."""

from operator import attrgetter

from reperf.logs.checks import Refused
from reperf.logs.format import Format, Read
from reperf.logs.formats import formats
from reperf.logs.log_file import BEGINNING, LogFile
from reperf.logs.scan import find_records

NO_FORMAT = "no known format: no line is one that a format prints for an iteration"
_EMPTY = "the file is empty"
_UTF_16 = "it is written in UTF-16: convert it to UTF-8 first"
_LETTERS = 64  # how many bytes at its beginning show the encoding of a text
_NO_TEXT = {
    b"PK\x03\x04": "it is a zip archive: give it a name that ends in .zip",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
"""What is wrong with a file that begins so."""
_OF_MLPERF = b":::ML"
_NO_TRAINING = (
    f"{NO_FORMAT.partition(': ')[0]}: its MLPerf lines stamp no stretch of training whose samples a "
    "format can count"
)
NOT_READ = ("unknown-format", "no-text")
"""The codes of the refusals of a file in which nothing was found that is a log's."""


def recognise(log: LogFile) -> Format:
    """Find a log's format from its content.

    Raises:
        Refused: it is no text, no format fits, or several do.
    """
    check_text(log)
    readers: dict[str, Read] = {}
    found: list[Format] = []
    of_mlperf = False
    unsigned = [log_format for log_format in formats().values() if log_format.signs]
    by_precedence = sorted(formats().values(), key=attrgetter("precedence"))
    for start, chunk in log.chunks():
        if not chunk.endswith((b"\n", b"\r")) and start + len(chunk) < log.size:
            continue  # it is part of a line that is too long to be a log's
        of_mlperf = of_mlperf or _OF_MLPERF in chunk
        unsigned = [
            log_format
            for log_format in unsigned
            if not any(sign in chunk for sign in log_format.signs)
        ]
        for log_format in by_precedence:
            if log_format.precedence and any(not rival.precedence for rival in found):
                break
            if log_format.marker not in chunk or log_format in unsigned or log_format in found:
                continue
            read = readers.setdefault(log_format.name, log_format.reader())
            if next(find_records(chunk, log_format, read), None) is not None:
                found.append(log_format)
        if found and (start > BEGINNING or any(not log_format.precedence for log_format in found)):
            break
    if not found:
        raise Refused("unknown-format", _NO_TRAINING if of_mlperf else NO_FORMAT)
    least = min(log_format.precedence for log_format in found)
    names = sorted(log_format.name for log_format in found if log_format.precedence == least)
    if len(names) > 1:
        why = f"the log fits {' and '.join(names)}: say which it is with --format"
        raise Refused("several-formats", why)
    return formats()[names[0]]


def check_text(log: LogFile) -> None:
    """Check that a log is text.

    Raises:
        Refused: it is empty, an archive, or in another encoding than those that extend ASCII.
    """
    start = log.part(0, min(_LETTERS + 1, log.size))
    if not start:
        raise Refused("no-text", _EMPTY)
    for sign, reason in _NO_TEXT.items():
        if start.startswith(sign):
            raise Refused("no-text", reason)
    for odd in (0, 1):  # without the mark that says so
        if len(start) > _LETTERS and set(start[odd:_LETTERS:2]) == {0} != set(start[:_LETTERS]):
            raise Refused("no-text", _UTF_16)
