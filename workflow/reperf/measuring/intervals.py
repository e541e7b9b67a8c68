"""The stretches of time that a log tells of, and the records between which they lie."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import fsum, gcd, inf
from typing import NamedTuple

from reperf.logs.facts import Refused
from reperf.logs.format import Format, Record

COARSEST = 0.01
"""How much of the window's time the steps of the log's clock may leave uncertain."""


MOST_TIMES = 2.0
"""How many times as fast as the run behind its start a window may be, where a program runs ahead of
its devices. Honest windows of MLPerf's logs are at most 1.12 times as fast, those of work that was
only queued 4 times."""


class Interval(NamedTuple):
    """A stretch of iterations whose time the log tells."""

    start: int
    """The iteration at whose end it starts."""
    stop: int
    seconds: float
    rate: float | None
    """The speed printed for it, in the format's own terms."""
    evaluated: float = 0.0
    """Seconds of evaluation in it; infinity if nothing says how many."""
    also: float | None = None
    """Its seconds by the log's second clock, if it has one."""

    @property
    def trains(self) -> bool:
        """Whether all but a trifle of its time went into training."""
        return self.evaluated <= COARSEST * self.seconds


def in_order(records: Sequence[Record]) -> bool:
    """Whether the iterations of records only go up."""
    places = [(record.epoch, record.iteration) for record in records]
    return all(before < after for before, after in pairwise(places))


def first_prints(
    records: Sequence[Record], log_format: Format
) -> tuple[list[Record], Counter[int]]:
    """The records in which the window must lie: of the first epoch, each iteration once.

    Args:
        records: of one rank, in the log's order.
        log_format: the log's format.

    Returns:
        The first record of each iteration, and how often an iteration is printed again.

    Raises:
        Refused: the iterations step back, as those of several ranks do.
    """
    slack = 0
    if log_format.repeats:
        strides = [after.iteration - before.iteration for before, after in pairwise(records)]
        slack = max(strides, default=0)
    before = records[0]
    found, again = [before], []
    for record in records[1:]:
        if (record.epoch, record.iteration) > (before.epoch, before.iteration):
            found.append(record)
            before = record
        elif record.epoch != before.epoch or record.iteration < before.iteration - slack:
            raise Refused(
                f"iteration {record.iteration} comes after {before.iteration}: "
                "the lines of several ranks are mixed without labels"
            )
        else:
            again.append(record)
    epoch = records[0].epoch
    repeated = Counter(record.iteration for record in again if record.epoch == epoch)
    return [record for record in found if record.epoch == epoch], repeated


def intervals(
    records: Sequence[Record], log_format: Format, behind: Sequence[Record] = ()
) -> list[Interval]:
    """The stretches of iterations whose time the log tells: between stamps, or as printed.

    Args:
        records: of one rank and epoch, in order.
        log_format: the log's format.
        behind: the record that follows them, if one does.

    Raises:
        Refused: the log tells no times.
    """
    stamped = _stamped(records)
    if stamped:
        strides = (after.iteration - before.iteration for before, after in pairwise(stamped))
        stride = min(strides, default=0)
        return [
            Interval(
                before.iteration,
                after.iteration,
                log_format.clock.between(before.time, after.time),
                after.rate,
                after.evaluated,
                _by_second_clock(before, after, stride if log_format.mean_durations else 0),
            )
            for before, after in pairwise(stamped)
        ]
    if any(record.duration is None for record in records):
        raise Refused(log_format.untimed)
    if log_format.in_two_lines:
        following = pairwise([*records, *behind])
        holes = {one for one, after in following if after.iteration - after.span > one.iteration}
        records = [record for record in records if record not in holes]
    distances = (after.iteration - before.iteration for before, after in pairwise(records))
    widest = gcd(*distances) if log_format.evenly and len(records) > 1 else inf
    return [
        Interval(
            record.iteration - record.span,
            record.iteration,
            record.duration,
            record.rate,
            record.evaluated,
        )
        for record in records
        if 0 < record.span <= widest
    ]


def _by_second_clock(before: Record, after: Record, stride: int) -> float | None:
    """The seconds between two records with time stamps, by what else tells them.

    Args:
        before: the first record.
        after: the second one.
        stride: over how many iterations a printed mean is taken; where more lie between, a line is
            lost. 0: no mean is printed.
    """
    if before.stamp is not None and after.stamp is not None:
        return after.stamp - before.stamp
    if stride == after.iteration - before.iteration and after.span and after.duration is not None:
        return after.duration / after.span * stride
    return None


def _stamped(records: Sequence[Record]) -> list[Record]:
    """The records with a time stamp; each tells of the evaluations since the one before it."""
    stamped, evaluated = [], 0.0
    for record in records:
        evaluated += record.evaluated
        if record.time is not None:
            stamped.append(
                record if evaluated == record.evaluated else record._replace(evaluated=evaluated)
            )
            evaluated = 0.0
    return stamped


def uncertainty(records: Sequence[Record], inside: Sequence[Interval]) -> float:
    """The seconds that the steps of the log's clock leave open in the time of some intervals."""
    tick = max(record.tick for record in records)
    return tick if records[0].time is not None else len(inside) * tick / 2


def times_as_fast(inside: Sequence[Interval], steps: Sequence[Interval]) -> float:
    """How many times as fast a window is as the run from its start on, evaluations left out.

    Args:
        inside: the intervals of the window.
        steps: those of the whole run; of some, nobody may know how long their evaluations took.
    """
    behind = [step for step in steps if step.start >= inside[0].start and step.evaluated < inf]
    seconds = fsum(max(0.0, step.seconds - step.evaluated) for step in behind)
    counted = sum(step.stop - step.start for step in behind)
    if not seconds or not counted:
        return 1.0
    return _pace(inside) * seconds / counted


def _pace(steps: Sequence[Interval]) -> float:
    return sum(step.stop - step.start for step in steps) / fsum(step.seconds for step in steps)


def check_evaluations(steps: Sequence[Interval], where: str) -> None:
    """Check that evaluations take no more than a trifle of the time of some steps."""
    seconds = fsum(step.seconds for step in steps)
    evaluated = fsum(step.evaluated for step in steps)
    if evaluated <= COARSEST * seconds:
        return
    first = next(step for step in steps if step.evaluated)
    much = "" if evaluated == inf else f" and take {evaluated:.6g} of its {seconds:.6g} s"
    raise Refused(
        f"evaluations lie in {where}{much}: the first between the iterations {first.start} "
        f"and {first.stop}"
    )
