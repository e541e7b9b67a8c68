"""From a log's bytes to records, in bounded memory.

Only the lines that hold the format's marker are looked at. After the window, a chunk whose last
record counts so high that no run can have begun in the chunk is skipped.
"""

import re
from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

from reperf.logs.format import Format, Read, Record
from reperf.logs.log_file import LONGEST_LINE, LogFile

LAST_WORDS = 1 << 14
"""Bytes at the end of a chunk in which the measured rank's last record, and before it the end of the
run, are looked for."""

OF_RUN = b"run_st"  # what is in every line that says that a run starts or stops

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


class Found(NamedTuple):
    """A record, and the offsets in its log, or in a part of it, where it starts and stops.

    Of a chunk that is skipped, the last record starts where the chunk does.
    """

    start: int
    stop: int
    record: Record


def scan(
    log: LogFile, log_format: Format, last: Callable[[], float], *, all_ranks: bool = False
) -> Iterator[Found]:
    """The records of a log, in order.

    Args:
        last: says, whenever it is asked, after which iteration records matter only as signs of
            another run.
        all_ranks: give the records of all labelled ranks, not only those of the lowest so far.

    Yields:
        Each record. Of the last one in a chunk that was skipped, nothing is known about the
        evaluations before it.
    """
    read = log_format.reader()
    stride = 0
    before: Record | None = None  # of the lowest rank so far
    for base, chunk in log.chunks():
        if stride and before and before.iteration > last() and not log_format.remembers:
            final = _only_goes_on(chunk, log_format, read, last(), stride=stride, before=before)
            if final is not None:
                before = final.record._replace(evaluated=inf)
                yield Found(base, base + final.stop, before)
                continue
        lowest = before.rank if before is not None and not all_ranks else None
        found = find_records(chunk, log_format, read, lowest=lowest, descend=not all_ranks)
        for start, stop, record in found:
            yield Found(base + start, base + stop, record)
            if before is not None and record.rank == before.rank:
                stride = max(stride, record.iteration - before.iteration)
            if before is None or record.rank <= before.rank:
                before = record


def _only_goes_on(
    chunk: bytes, log_format: Format, read: Read, last: float, *, stride: int, before: Record
) -> Found | None:
    """The last record of a chunk after the window, if no other run can have begun in the chunk.

    A run that began in the chunk could have counted, by the chunk's end, no further than to the
    window's end plus, for each record, the widest step so far.

    Args:
        last: the iteration after which records matter only as signs of another run.
        stride: the widest step so far.
    """
    nearest = max(0, len(chunk) - LAST_WORDS)
    at = chunk.rfind(log_format.marker, nearest)
    while at >= 0 and _rank(chunk, chunk.rfind(b"\n", 0, at) + 1) > before.rank:
        at = chunk.rfind(log_format.marker, nearest, at)
    if at < 0:
        return None
    line = max(chunk.rfind(end, 0, at) for end in (b"\n", b"\r")) + 1
    final = next(find_records(chunk, log_format, read, start=line), None)
    if final is None or final.record.rank != before.rank or final.record.epoch != before.epoch:
        return None
    if chunk.find(OF_RUN, nearest, final.start) >= 0:  # a run that ended may print a few more lines
        return None
    climbed = final.record.iteration - last
    # An upper bound comes first, for counting is as slow as reading: no record is less than half as
    # long as another.
    most_records = 2 * len(chunk) // len(final.record.text)
    if climbed <= stride * most_records and climbed <= stride * chunk.count(log_format.marker):
        return None
    return final


def find_records(
    text: bytes,
    log_format: Format,
    read: Read,
    *,
    start: int = 0,
    lowest: tuple[int, ...] | None = None,
    descend: bool = False,
) -> Iterator[Found]:
    """The records of a text, in order.

    Args:
        text: whole lines.
        start: offset from which to look.
        lowest: labelled ranks above this one are skipped.
        descend: skip those above the lowest that is found, too.
    """
    marker, pattern = log_format.marker, log_format.line
    at = text.find(marker, start)
    line = line_end = end = 0
    while at >= 0:
        # Nothing is searched twice for the ends of lines: a text may be one line of progress bars.
        if line_end <= at:
            line = end = text.rfind(b"\n", line_end, at) + 1 or line_end
            line_end = text.find(b"\n", at) + 1 or len(text)
        # A progress bar rewrites its line: what follows a carriage return is a line of its own.
        begin = text.rfind(b"\r", end, at) + 1 or end
        end = text.find(b"\r", at, line_end) + 1 or line_end
        rank = _rank(text, line)
        if end - begin < LONGEST_LINE and (lowest is None or rank <= lowest):
            for match in pattern.finditer(text, begin, end):
                record = read(match, rank)
                if record is not None:
                    yield Found(match.start(), match.end(), record)
                    if descend:
                        lowest = record.rank if lowest is None else min(lowest, record.rank)
        at = text.find(marker, end)


def _rank(text: bytes, at: int) -> tuple[int, ...]:
    """The numbers in the launchers' labels before a line."""
    if text[at] not in _LABELS_BEGIN:
        return ()
    rank: tuple[int, ...] = ()
    while len(rank) < _MOST_LABELS and (label := _LABEL.match(text, at)):
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
