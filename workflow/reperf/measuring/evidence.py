"""What tells one measured run from another, whatever its file is called and wherever it lies.

The same run may lie there as a copy, behind a link, in an archive, with a line more or with other
words in a line. Its lines in the window tell; and so do its times, where no other run can have the
same ones.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from reperf.logs.clock import DATE, UNIX
from reperf.logs.format import Format, Record

_ABSOLUTE = (DATE, UNIX)
"""Clocks that tell the day; others begin with the run, the machine or the day."""
_FEWEST = 5
_FINEST = 10_000
"""Repeats differ by a ten-thousandth at least, now and then: over so many stretches, each so many
steps of the clock long, no two of them take the same times."""
_STEP = 1e-6
"""The step in seconds of a clock whose stamps do not show it."""
_STAMP = re.compile(rb'"time_ms": ?(\d{12,14})\b')

Span = tuple[float, float]
"""When something began and ended, in seconds since 1970."""


class Evidence(NamedTuple):
    """What a run's log tells of the window in which it was measured."""

    lines: str
    """SHA-256 of the lines in the window, without the ranks' labels."""
    times: str | None
    """SHA-256 of their times; None if another run may have the same ones."""
    span: Span | None
    """The window's; None if the log's clock does not tell the day."""


def evidence_of(records: Sequence[Record], log_format: Format) -> Evidence:
    """What the records in a window tell.

    Args:
        records: of one rank and epoch, in the log's order.
        log_format: of the log.
    """
    lines = ((str(one.iteration).encode(), one.text) for one in records)
    times = "\n".join(_times(records, log_format))
    return Evidence(
        lines=sha256(b"\n".join(b"\t".join(line) for line in lines)).hexdigest(),
        times=sha256(times.encode()).hexdigest() if times else None,
        span=_span(records, log_format),
    )


def _times(records: Sequence[Record], log_format: Format) -> Iterator[str]:
    """The times of some records, if they are so fine that no two runs have the same ones."""
    stamped = [one for one in records if one.time is not None]
    if log_format.clock in _ABSOLUTE and all(one.tick < 1 for one in stamped):
        yield from (f"{one.iteration} {one.time:.6f}" for one in stamped)
        return
    steps = [
        round(((after.time or 0.0) - (before.time or 0.0)) / max(before.tick, _STEP))
        for before, after in pairwise(stamped)
    ]
    if len(steps) >= _FEWEST and min(steps) >= _FINEST:
        yield from (f"{one.iteration} {step}" for one, step in zip(stamped, steps, strict=False))


def _span(records: Sequence[Record], log_format: Format) -> Span | None:
    if not records:
        return None
    if log_format.clock in _ABSOLUTE:
        times = [one.time for one in records if one.time is not None]
    else:
        ends = (_STAMP.search(one.text) for one in (records[0], records[-1]))
        times = [int(end[1]) / 1000 for end in ends if end]
    return (min(times), max(times)) if len(times) > 1 else None
