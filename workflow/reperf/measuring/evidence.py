"""What tells one measured run from another, whatever its file is called and wherever it lies.

The same run may lie there as a copy, behind a link, in an archive, with a line more or with other
words in a line. Its lines in the window tell; and so do its times, where no other run can have the
same ones.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from math import ceil, inf, log2
from statistics import median
from typing import NamedTuple

from reperf.logs.clock import DATE, TIME_OF_DAY, UNIX, YEARLESS, tick
from reperf.logs.format import Format, Record

_DATED = 1e9
"""Seconds: later times count from 1970, and tell the day; others begin with the run, the machine or
the day. Dates without a year are read as of 2000, before that."""
_FEWEST = 5
_FINEST = 10_000
"""Repeats differ by a ten-thousandth at least, now and then: over so many stretches, each so many
steps of the clock long, no two of them take the same times."""
_RAREST = 30.0
"""Bits: shorter stretches tell a run, too, if another takes the same times with a chance of one in
two to this power: by a thousandth, in which repeats differ most often, and by what the stretches
differ among each other, for a clock may be too steady to be true. Printed speeds tell likewise."""
_OF_PARTS = 45.0
"""Bits that tell a part of a window, for there are many: a copy may be asked for another window."""
_RARE = 15.0
"""Bits that are enough where the lines say the same in all but their dates, losses included: these
alone tell nothing, for repeats may begin with the same weights and see the same batches."""
_LOSS = re.compile(rb"[Ll](?:oss|OSS)[^\w\r\n]{0,9}(\d{1,9}\.\d{3,20})")
_FEWEST_LOSSES = 3
"""So many losses, in three decimals at least, tell a run if another has the same ones at the same
times, however coarse the clock is."""
_MOST = 1000
"""How many stamps of one window are compared, and how many of its parts."""
_FEW = 32
"""Steps in each of which a part of the window begins."""
_FINE = 1e-3
"""The coarsest step in seconds of a clock of which no two runs have all stamps in common."""
_TENTH = 0.1
"""The coarsest one of which no two have all in common and none besides."""
_STEP = 1e-6
"""The step in seconds of a clock whose stamps do not show it."""
_STEP_OF_UNIX = 1e-3
"""Likewise of one that counts from 1970: its many digits are not known to the last one, and a copy
whose dates are others must show the same steps."""
_FINEST_SPEED = 1e-6
"""The part of a printed speed that is measured: of more digits, its clock knows nothing."""
_DATES = "|".join(one.pattern for one in (DATE, YEARLESS, TIME_OF_DAY, UNIX))
_ANY_STAMP = re.compile(rf"(?<![\d.])(?:{_DATES}|\d{{12,14}})(?!\d)".encode())

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
    stamps: tuple[float, ...]
    """When its first lines were printed, by a clock of milliseconds that tells the date or the time
    of day; else empty."""
    span: Span | None
    """The window's; None if the log's clock does not tell the day."""


def evidence_of(records: Sequence[Record], log_format: Format) -> Evidence:
    """What the records in a window tell.

    Args:
        records: of one rank and epoch, in the log's order.
    """
    stamps = _dates(records[:_MOST], _FINE, any_day=log_format.clock is TIME_OF_DAY)
    coarse = [] if stamps else _dates(records, _TENTH)
    lines = ((str(one.iteration).encode(), one.text) for one in records)
    return Evidence(
        lines=sha256(b"\n".join(b"\t".join(line) for line in lines)).hexdigest(),
        times=(*([_digest(coarse)] if coarse else ()), *_steps(records, log_format)),
        stamps=tuple(stamps),
        span=_span(records),
    )


def same_times(stamps: Sequence[float], others: Sequence[float]) -> bool:
    """Whether all stamps of one run are another's, in the time in which both print.

    Two runs at the same time may well print some lines in the same millisecond. A copy prints all
    of its lines so, whatever lines were left out of it.
    """
    start, stop = max(stamps[0], others[0]), min(stamps[-1], others[-1])
    one, other = ({at for at in some if start <= at <= stop} for some in (stamps, others))
    return len(one & other) == min(len(one), len(other)) > 1


def _dates(records: Sequence[Record], coarsest: float, *, any_day: bool = False) -> list[float]:
    """When lines were printed; none if one does not tell the day, or only in longer steps."""
    found = ((one.time if one.stamp is None else one.stamp, one.tick) for one in records)
    times = [(at, step) for at, step in found if at is not None]
    if not all((any_day or at >= _DATED) and step <= coarsest for at, step in times):
        return []
    # Some programs print whole seconds in milliseconds.
    shown = coarsest == inf or any(round(at / coarsest) % 10 for at, _ in times)
    return [at for at, _ in times] if shown else []


def _steps(records: Sequence[Record], log_format: Format) -> Iterator[str]:
    """How long each stretch took, whenever that was, if no other run can have taken the same."""
    finest = _STEP_OF_UNIX if log_format.clock is UNIX else _STEP
    stamped = [one for one in records if one.time is not None]
    steps = [
        round(((after.time or 0.0) - (before.time or 0.0)) / max(before.tick, finest))
        for before, after in pairwise(stamped)
    ] or [round((one.duration or 0.0) / max(one.tick, finest)) for one in records[1:]]
    if not steps or max(steps) < 1:
        return
    while not any(one % 10 for one in steps):  # the clock is coarser than it is printed
        steps = [one // 10 for one in steps]
    known = [one.iteration for one in records], steps
    tells_losses = _tells_losses(records)
    if tells_losses:
        yield _digest((*known, _said(records)))
    if min(steps) < 1:
        return
    each = _bits_of(steps)
    by_times = len(steps) * each
    if by_times >= _OF_PARTS:
        yield from _parts(known[0][-len(steps) - 1 :], steps, _OF_PARTS / each)
    if by_times >= _RAREST or (len(steps) >= _FEWEST and min(steps) >= _FINEST):
        yield _digest(known)
    speeds = [speed for one in records[1:] if (speed := _speed(one, log_format))]
    by_both = max(by_times, len(speeds) * _bits_of(_in_steps(speeds)))
    if by_both >= _RAREST:
        yield _digest((*known, speeds))
    if by_both >= _RARE and not tells_losses:
        yield _digest((*known, _said(records)))


def _parts(iterations: Sequence[int], steps: Sequence[int], least: float) -> Iterator[str]:
    """The stretches of at least so many steps, each by its iterations and its times.

    Also of a step or two more: by another window of the same run, the least is about as many. Of
    many steps, those begin a stretch whose time says so, which are the same ones in a copy.
    """
    one_in = 1 if len(steps) <= _FEW else _FEW // 4
    for many in range(ceil(least), ceil(least) + 3):
        for at in range(min(len(steps) - many + 1, _MOST)):
            if steps[at] % one_in == 0:
                yield _digest((iterations[at : at + many + 1], steps[at : at + many]))


def _tells_losses(records: Sequence[Record]) -> bool:
    """Whether records print losses that tell a run."""
    found: set[bytes] = set()
    for one in records:
        found.update(_LOSS.findall(one.text))
        if len(found) >= _FEWEST_LOSSES:
            return True
    return False


def _said(records: Sequence[Record]) -> list[bytes]:
    """What records say, without dates and times of day."""
    return [_ANY_STAMP.sub(b"", one.text) for one in records]


def _speed(record: Record, log_format: Format) -> float | None:
    """The printed speed, or the mean speed of a format that prints no other."""
    if record.rate is not None or "mean" not in log_format.line.groupindex:
        return record.rate
    found = log_format.line.search(record.text)
    return float(found["mean"]) if found else None


def _digest(said: object) -> str:
    return sha256(repr(said).encode()).hexdigest()


def _in_steps(speeds: Sequence[float]) -> list[float]:
    """Printed speeds, counted in steps of their last digit that is measured."""
    if not speeds:
        return []
    step = max(_FINEST_SPEED * median(speeds), min(tick(repr(one)) for one in speeds))
    return [one / step for one in speeds]


def _bits_of(steps: Sequence[float]) -> float:
    """How much each of some numbers says that another run would have otherwise, in bits.

    Of one number alone, nobody knows how it spreads.
    """
    if not steps:
        return 0.0
    usual = median(steps)
    by_size = _bits(usual / 1000)
    spread = _SIGMAS * median(abs(one - usual) for one in steps)
    return by_size if len(steps) == 1 else min(by_size, _bits(spread))


def _bits(spread: float) -> float:
    """How much the number of steps of a clock says that is spread so far, in bits."""
    return log2(1 + _EVEN * spread)


def _span(records: Sequence[Record]) -> Span | None:
    times = _dates(records, inf)
    return (min(times), max(times)) if len(times) > 1 else None
