"""From a stream of bytes to records, in bounded memory, at nearly the speed of reading.

A log may be a hundred lines or many gigabytes, mostly not records, or records far behind the window.
So only the lines that matter are looked at: blocks are searched for the format's marker, and the
last record of a block can tell that no run begins in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from math import inf
from typing import Any

from reperf.logs.format import Format, Read, Record

SMALLEST_BLOCK = 1 << 16
BLOCK = 1 << 20
SMALLEST_PART = 1 << 15
"""Bytes: of a smaller part of a block, no half is skipped without the other."""
LONGEST_LINE = 1 << 20
"""Bytes: a longer line is not a log's, and is cut there."""
LONGEST_GAP = 1 << 22
"""How many bytes of text before a record are kept, the newest; of older ones, what they say."""
LAST_WORDS = 1 << 14
"""How many bytes before the last record of a block are searched for the measured rank's, and for the
end of the run."""

OF_RUN = b"run_st"
"""What is in every line that says that a run starts or stops."""
_ESCAPE = b"\x1b"
_COLOUR = re.compile(rb"\x1b(?:\[(?:[\d;]{0,30}m|0?K)|\(B)")
"""What a terminal shows as a colour, around a line or any part of it, or by which it clears the rest
of a line."""

# What launchers put before a line: mpirun and horovodrun `[1,3]<stderr>:` (perhaps after a date),
# srun `3: `, torchrun `[default3]:`, and `rank 3: ` or `[rank3]: `.
_LABEL = re.compile(
    rb"""(?x: (?: [A-Z][a-z]{2} [ ] [A-Z][a-z]{2} [ ] [ \d]\d [ ] \d\d:\d\d:\d\d [ ] \d{4} )?
        (?: \[\d{1,9},(\d{1,9})\] (?:<std(?:out|err)>)? :
          | \[ (?:default|rank) (\d{1,9}) \]:
          | (?:rank)? [ ]* (\d{1,9}): (?=[ ]) )
        [ ]? )"""
)
_MOST_LABELS = 4
_LABELS_BEGIN = frozenset(b"[ r0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The first bytes of labels: no others need to be searched."""

Found = tuple[int, int, Record]
"""Where a record starts and stops in its block, and the record itself."""


Stream = Any
"""A file to read: what has read() and readinto(), which typing's IO lacks."""


def blocks(stream: Stream) -> Iterator[bytes]:
    """The stream in pieces that end where a line ends, small ones first, without colours.

    Each piece is a small part of what came before it, so that a run that began in it would visibly
    count lower than one that goes on; see _only_goes_on. Where eight ranks print, half of it is.
    """
    coloured, size = False, 0
    for piece in _pieces(stream):
        size += len(piece)
        # Who colours lines does so from the beginning; to look through all of a log takes its time.
        if (coloured or size < LONGEST_GAP) and _ESCAPE in piece:
            coloured = True
            yield _COLOUR.sub(b"", piece)
        else:
            yield piece
        del piece  # its memory is the next one's


def _pieces(stream: BufferedIOBase) -> Iterator[bytes]:
    # All is read into one buffer: memory that is new to a process takes as long as reading does.
    buffer, size = bytearray(2 * SMALLEST_BLOCK), SMALLEST_BLOCK
    held = 0  # bytes of a line that goes on
    while True:
        wanted = min(BLOCK, max(SMALLEST_BLOCK, size // 8))
        if held + wanted > len(buffer):
            buffer = buffer[:held].ljust(held + 2 * wanted, b"\0")
        with memoryview(buffer) as whole, whole[held : held + wanted] as free:
            read = stream.readinto(free)
        if not read:
            break
        size, end = size + read, held + read
        cut = buffer.rfind(b"\n", held, end) + 1 or buffer.rfind(b"\r", held, end) + 1
        if not cut and end < LONGEST_LINE:
            held = end
            continue
        cut = cut or end
        with memoryview(buffer) as whole:
            yield bytes(whole[:cut])
        held = end - cut
        buffer[:held] = buffer[cut:end]
    if held:
        yield bytes(buffer[:held])


def is_one_long_line(piece: bytes) -> bool:
    """Whether a piece is part of a line that is too long to be a log's."""
    return len(piece) >= LONGEST_LINE and b"\n" not in piece and b"\r" not in piece


def scan(
    pieces: Iterable[bytes],
    log_format: Format,
    last: Callable[[], float],
    *,
    all_ranks: bool = False,
) -> Iterator[tuple[bytes, Record | None]]:
    """The records of a log, and the text around them in pieces of whole lines.

    Args:
        pieces: the log, as from `blocks`.
        log_format: its format.
        last: says, whenever it is asked, after which iteration records matter only as signs of
            another run.
        all_ranks: give the records of all labelled ranks, not only those of the lowest so far.

    Yields:
        A text and the record behind it, or None where the text goes on with what comes next. Where
        records were skipped, nothing is known about evaluations before the next.
    """
    read = log_format.reader()
    stride = 0
    before: Record | None = None  # of the lowest rank so far
    waiting: list[bytes] = []
    pieces = iter(pieces)
    # A piece that is nothing but colours is empty, and others follow.
    while (block := waiting.pop() if waiting else next(pieces, None)) is not None:
        final, end = None, 0
        if stride and before and before.iteration > last() and log_format.remembering is None:
            final = _only_goes_on(block, log_format, read, last(), stride, before=before)
            if final is None and (halves := _halves(block, log_format.marker)):
                waiting += reversed(halves)
                continue
        if final is not None:
            # Nobody looked for evaluations in what was skipped.
            before = final[2]._replace(evaluated=inf)
            yield _before(final, block, log_format), before
            end = final[1]
        else:
            lowest = before.rank if before is not None and not all_ranks else None
            found = find_records(block, log_format, read, lowest=lowest, descend=not all_ranks)
            for start, stop, record in found:
                yield block[end:start], record
                end = stop
                if before is None or record.rank < before.rank:
                    before = record
                elif record.rank == before.rank:
                    stride = max(stride, record.iteration - before.iteration)
                    before = record
        yield block[end:], None
        del block


def _only_goes_on(
    block: bytes,
    log_format: Format,
    read: Read,
    last: float,
    stride: int,
    *,
    before: Record,
) -> Found | None:
    """The last record of a block after the window, if no other run can have begun in the block.

    A run that began in the block could have counted, by the block's end, no further than to the
    window's end plus, for each record, the widest step seen so far.

    Args:
        block: whole lines.
        log_format: the log's format.
        read: the format's reader for this log.
        last: the iteration after which records matter only as signs of another run.
        stride: the widest step seen so far.
        before: the measured rank's record before the block.
    """
    at = last_of_any = block.rfind(log_format.marker)
    if at < 0:
        return None
    farthest = max(0, at - LAST_WORDS)
    while at >= 0 and _rank(block, block.rfind(b"\n", 0, at) + 1) > before.rank:
        at = block.rfind(log_format.marker, farthest, at)
    start = _line_start(block, at if at >= 0 else last_of_any)
    final = next(find_records(block, log_format, read, start=start), None)
    if final is None or final[2].epoch != before.epoch:
        return None
    climbed = final[2].iteration - last
    # An upper bound comes first, for counting is as slow as reading: no record is less than half as
    # long as another.
    most_records = 2 * len(block) // len(final[2].text)
    if climbed <= stride * most_records and climbed <= stride * block.count(log_format.marker):
        return None
    return final


def _halves(block: bytes, marker: bytes) -> tuple[bytes, bytes] | None:
    """The halves of a block, in whole lines, if it is large and may hold records."""
    cut = block.find(b"\n", len(block) // 2) + 1
    if len(block) < SMALLEST_PART or cut in (0, len(block)) or marker not in block:
        return None
    return block[:cut], block[cut:]


def _before(final: Found, block: bytes, log_format: Format) -> bytes:
    """The text before the last record of a block in which others are skipped.

    A run that has ended may print one more record, or a few: what says so is searched for farther
    back. All else was said before the window.
    """
    if log_format.ended is None:
        return b""
    line = _line_start(block, final[0])
    nearest = max(0, block.rfind(log_format.marker, 0, line))
    farthest = max(0, min(nearest, line - LAST_WORDS))
    start = nearest if block.find(OF_RUN, farthest, line) < 0 else farthest
    return block[start : final[0]]


def find_records(
    block: bytes,
    log_format: Format,
    read: Read,
    *,
    start: int = 0,
    lowest: tuple[int, ...] | None = None,
    descend: bool = False,
) -> Iterator[Found]:
    """The records of a block, in order.

    Args:
        block: whole lines.
        log_format: the log's format.
        read: the format's reader for this log.
        start: offset from which to look.
        lowest: labelled ranks above this one are skipped.
        descend: skip those above the lowest that is found, too.
    """
    marker, pattern = log_format.marker, log_format.line
    at = block.find(marker, start)
    line = line_end = end = 0
    while at >= 0:
        # Nothing is searched twice for the ends of lines: a block may be one line of progress bars.
        if line_end <= at:
            line = end = block.rfind(b"\n", line_end, at) + 1 or line_end
            line_end = block.find(b"\n", at) + 1 or len(block)
        # A progress bar rewrites its line: what follows a carriage return is a line of its own.
        begin = block.rfind(b"\r", end, at) + 1 or end
        end = block.find(b"\r", at, line_end) + 1 or line_end
        rank = _rank(block, line)
        if lowest is None or rank <= lowest:
            for match in pattern.finditer(block, begin, end):
                record = read(match, rank)
                if record is not None:
                    yield match.start(), match.end(), record
                    if descend:
                        lowest = record.rank if lowest is None else min(lowest, record.rank)
        at = block.find(marker, end)


def _line_start(block: bytes, at: int) -> int:
    """Where the line that holds `at` begins; a carriage return begins a line, too."""
    line = block.rfind(b"\n", 0, at) + 1
    return max(line, block.rfind(b"\r", line, at) + 1)


def _rank(block: bytes, at: int) -> tuple[int, ...]:
    """The numbers in the launchers' labels before a line."""
    if block[at] not in _LABELS_BEGIN:
        return ()
    rank: tuple[int, ...] = ()
    while len(rank) < _MOST_LABELS and (label := _LABEL.match(block, at)):
        rank += (int(label[label.lastindex or 0]),)
        at = label.end()
    return rank


def lines_of_rank(text: bytes, rank: tuple[int, ...]) -> bytes:
    """The lines of a text that carry the labels of one rank."""
    lines = text.splitlines(keepends=True)
    return b"".join(line for line in lines if _rank(line, 0) == rank)


def after_labels(line: bytes) -> int:
    """Where a line goes on after the launchers' labels."""
    end = 0
    while label := _LABEL.match(line, end):
        end = label.end()
    return end
