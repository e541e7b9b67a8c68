"""What shows that two logs are of the same run: a digest of the window's times, and when it ran."""

from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from reperf.logs.clock import UNIX
from reperf.logs.format import Format
from reperf.logs.logged_runs import LoggedRun

_DATED = 1e9
"""Seconds: later times count from 1970, and give the day; others begin with the run or the day."""
_FEWEST = 5
"""Of so many different durations or more, in steps of the clock, no two runs have the same ones."""
_STEP = 1e-6
"""The step in seconds of a clock whose stamps do not show it."""
_STEP_OF_UNIX = 1e-3
"""The step used for a clock that counts from 1970: its many digits are not exact to the last."""

Span = tuple[float, float]
"""When something began and ended, in seconds since 1970."""


class Fingerprint(NamedTuple):
    """What a log shows of the window in which its run was measured."""

    digest: str
    """SHA-256 of the window's iterations and times, or of its lines where the clock is so coarse
    that another run may have the same times."""
    span: Span | None
    """When the window began and ended; None if the log's clock does not give the day."""
    step_times: str = ""
    """As reperf.measuring.intervals.step_times gives them, if they were asked for."""


def fingerprint_of(run: LoggedRun, log_format: Format, first: int, last: int) -> Fingerprint:
    """What the lines of a run's lowest rank show between two iterations of its first epoch."""
    rank = min(record.rank for record in run.records)
    records = [
        record
        for record in run.first_epoch
        if record.rank == rank and first <= record.iteration <= last
    ]
    finest = _STEP_OF_UNIX if log_format.clock is UNIX else _STEP
    stamped = [record for record in records if record.time is not None]
    durations = [
        round(((after.time or 0.0) - (before.time or 0.0)) / max(before.tick, finest))
        for before, after in pairwise(stamped)
    ] or [round((record.duration or 0.0) / max(record.tick, finest)) for record in records[1:]]
    times = [record.time if record.stamp is None else record.stamp for record in records]
    dated = [time for time in times if time is not None and time >= _DATED]
    is_dated = len(dated) == len(times) > 1
    content: list[object] = [record.text for record in records]
    if len(set(durations)) >= _FEWEST:
        content = [*durations]
    elif is_dated and any(time % 1 for time in dated):  # finer than seconds
        content = [*dated]
    iterations = [record.iteration for record in records]
    return Fingerprint(
        digest=sha256(repr((iterations, content)).encode()).hexdigest(),
        span=(min(dated), max(dated)) if is_dated else None,
    )
