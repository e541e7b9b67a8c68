"""From a stream of bytes to records, with bounded memory, at nearly the speed of reading.

A log may be a hundred lines or many gigabytes, most of it not records, or records far behind the
window. So no line is looked at that need not be: blocks are searched for the format's marker, and
a block that only continues behind the window is known by its first and its last record.
"""

import re
from collections.abc import Iterator
from typing import IO

from reperf.logs.format import Format, Record

BLOCK = 1 << 20
LONGEST_LINE = 1 << 24
"""Bytes: what has no line end in so many is no log, and is cut where it stands."""
LONGEST_GAP = 1 << 22
"""Bytes of text before a record that are kept, the newest: facts about a run are found there."""

# What launchers put before a line: mpirun and horovodrun `[1,3]<stderr>:` (a date may stand before
# it), srun `3: `, torchrun `[default3]:`, and `rank 3: ` or `[rank3]: `.
_LABEL = re.compile(
    rb"""(?x: (?: [A-Z][a-z]{2} [ ] [A-Z][a-z]{2} [ ] [ \d]\d [ ] \d\d:\d\d:\d\d [ ] \d{4} )?
        (?: \[\d+,(\d+)\] (?:<std(?:out|err)>)? :
          | \[ (?:default|rank) (\d+) \]:
          | (?:rank)? [ ]* (\d+): (?=[ ]) )
        [ ]? )"""
)


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in pieces of about a MiB that end where a line ends."""
    rest = b""
    while chunk := stream.read(BLOCK):
        cut = chunk.rfind(b"\n") + 1 or chunk.rfind(b"\r") + 1
        if not cut and len(rest) + len(chunk) < LONGEST_LINE:
            rest += chunk
            continue
        cut = cut or len(chunk)
        yield rest + chunk[:cut]
        rest = chunk[cut:]
    if rest:
        yield rest


def scan(
    stream: IO[bytes], log_format: Format, last: float
) -> Iterator[tuple[bytes, Record | None]]:
    """The records of a log, each with the text before it.

    Args:
        stream: the log's bytes.
        log_format: its format.
        last: of blocks whose iterations are all behind this one and evenly spaced, only the first
            and the last record are given.

    Yields:
        The text since the record before (at most LONGEST_GAP bytes, the newest) and the record;
        at the end the text behind the last record, and None.
    """
    gap = b""
    for block in blocks(stream):
        end = 0
        for start, stop, record in _chosen(block, log_format, last):
            yield gap + block[end:start], record
            gap, end = b"", stop
        gap = (gap + block[end:])[-LONGEST_GAP:]
    yield gap, None


Found = tuple[int, int, Record]
"""Where a record starts and stops in its block, and the record."""


def _chosen(block: bytes, log_format: Format, last: float) -> Iterator[Found]:
    """The records of a block that matter."""
    if coasting := _coasting(block, log_format, last):
        return iter(coasting)
    return find_records(block, log_format)


def _coasting(block: bytes, log_format: Format, last: float) -> list[Found] | None:
    """The first and last record of a block, if those between can only lie evenly between them."""
    count = block.count(log_format.marker)
    if count < 4:
        return None
    forward = find_records(block, log_format)
    one, two = next(forward, None), next(forward, None)
    tail = _line_start(block, block.rfind(log_format.marker))
    final = next(find_records(block, log_format, tail), None)
    if one is None or two is None or final is None or one[2].iteration <= last:
        return None
    step = two[2].iteration - one[2].iteration
    even = final[2].iteration - one[2].iteration == step * (count - 1)
    alike = one[2].rank == two[2].rank == final[2].rank
    alike = alike and one[2].epoch == two[2].epoch == final[2].epoch
    return [one, final] if even and alike and step > 0 else None


def find_records(block: bytes, log_format: Format, start: int = 0) -> Iterator[Found]:
    """All records of a block, in order, from an offset on."""
    at = block.find(log_format.marker, start)
    while at >= 0:
        line = block.rfind(b"\n", 0, at) + 1
        # A progress bar rewrites its line: what follows a carriage return is a line for itself.
        begin = max(line, block.rfind(b"\r", line, at) + 1)
        end = block.find(b"\n", at) + 1 or len(block)
        end = block.find(b"\r", at, end) + 1 or end
        rank = _rank(block, line)
        for match in log_format.pattern.finditer(block, begin, end):
            record = log_format.read(match, rank)
            if record is not None:
                yield match.start(), match.end(), record
        at = block.find(log_format.marker, end)


def _line_start(block: bytes, at: int) -> int:
    line = block.rfind(b"\n", 0, at) + 1
    return max(line, block.rfind(b"\r", line, at) + 1)


def _rank(block: bytes, at: int) -> tuple[int, ...]:
    """The numbers in the launchers' labels before a line."""
    rank = ()
    while label := _LABEL.match(block, at):
        rank += (int(next(group for group in label.groups() if group is not None)),)
        at = label.end()
    return rank
