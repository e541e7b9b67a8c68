"""What tells one measured run from another, whatever its file is called and wherever it lies.

The same run may lie there as a copy, behind a link, in an archive, with a line more or with other
words in a line. Its lines in the window tell; and so do its times, where no other run can have the
same ones.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from math import log2
from statistics import median
from typing import NamedTuple

from reperf.logs.clock import DATE, UNIX
from reperf.logs.format import Format, Record

_ABSOLUTE = (DATE, UNIX)
"""Clocks that tell the day; others begin with the run, the machine or the day."""
_FEWEST = 5
_FINEST = 10_000
"""Repeats differ by a ten-thousandth at least, now and then: over so many stretches, each so many
steps of the clock long, no two of them take the same times."""
_RAREST = 30.0
"""Bits: shorter stretches tell a run, too, if another takes the same times with a chance of one in
two to this power: by a thousandth, in which repeats differ most often, and by what the stretches
differ among each other, for a clock may be too steady to be true."""
_PAIRS = 1000
"""How many pairs of stamps of one window are compared."""
_FINE = 1e-3
"""The coarsest step in seconds of a clock of which no two runs have two stamps in common."""
_STEP = 1e-6
"""The step in seconds of a clock whose stamps do not show it."""
_STAMP = re.compile(rb'"time_ms": ?(\d{12,14})\b')

_SIGMAS = 1.4826
"""The standard deviations in a median deviation, where times spread as most things do."""
_EVEN = 4.1327
"""The width of an even spread that says as much as one whose standard deviation is 1."""

Span = tuple[float, float]
"""When something began and ended, in seconds since 1970."""


class Evidence(NamedTuple):
    """What a run's log tells of the window in which it was measured."""

    lines: str
    """SHA-256 of the lines in the window, without the ranks' labels."""
    times: tuple[str, ...]
    """What of their times no other run has, so that one of these is enough to tell a copy by."""
    span: Span | None
    """The window's; None if the log's clock does not tell the day."""


def evidence_of(records: Sequence[Record], log_format: Format) -> Evidence:
    """What the records in a window tell.

    Args:
        records: of one rank and epoch, in the log's order.
        log_format: of the log.
    """
    lines = ((str(one.iteration).encode(), one.text) for one in records)
    return Evidence(
        lines=sha256(b"\n".join(b"\t".join(line) for line in lines)).hexdigest(),
        times=(*_stamps(records, log_format), *_steps(records)),
        span=_span(records, log_format),
    )


def _stamps(records: Sequence[Record], log_format: Format) -> Iterator[str]:
    """Times of day that no other run has, however its iterations are counted."""
    stamped = [one for one in records if one.time is not None]
    if log_format.clock not in _ABSOLUTE or not all(one.tick < 1 for one in stamped):
        return
    times = [f"{one.time:.6f}" for one in stamped]
    if all(one.tick <= _FINE for one in stamped):
        yield from map(" ".join, pairwise(times[: _PAIRS + 1]))
    else:
        yield " ".join(times)


def _steps(records: Sequence[Record]) -> Iterator[str]:
    """How long each stretch took, whenever that was, if no other run can have taken the same."""
    stamped = [one for one in records if one.time is not None]
    steps = [
        round(((after.time or 0.0) - (before.time or 0.0)) / max(before.tick, _STEP))
        for before, after in pairwise(stamped)
    ] or [round((one.duration or 0.0) / max(one.tick, _STEP)) for one in records[1:]]
    if len(steps) < _FEWEST or min(steps) < 1:
        return
    usual = median(steps)
    spread = _SIGMAS * median(abs(one - usual) for one in steps)
    rare = len(steps) * min(_bits(usual / 1000), _bits(spread)) >= _RAREST
    if min(steps) >= _FINEST or rare:
        iterations = (one.iteration for one in records)
        text = "\n".join(map(str, (*iterations, *steps)))
        yield sha256(text.encode()).hexdigest()


def _bits(spread: float) -> float:
    """How much the number of steps of a clock says that is spread so far, in bits."""
    return log2(1 + _EVEN * spread)


def _span(records: Sequence[Record], log_format: Format) -> Span | None:
    if not records:
        return None
    if log_format.clock in _ABSOLUTE:
        times = [one.time for one in records if one.time is not None]
    else:
        ends = (_STAMP.search(one.text) for one in (records[0], records[-1]))
        times = [int(end[1]) / 1000 for end in ends if end]
    return (min(times), max(times)) if len(times) > 1 else None
