"""The intervals between records, and the time that each of them took."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from math import fsum, gcd, inf
from statistics import median_high
from typing import NamedTuple

from reperf.logs.checks import Refused
from reperf.logs.events import Evaluated
from reperf.logs.format import Format, Prints, Record

COARSEST = 0.01  # how much of the window's time the steps of the log's clock may leave uncertain

MLLOG_TICK = 0.001  # the step, in seconds, of the clock that stamps evaluations
AT_ONCE = 1.05
"""How many times as fast as all other stretches one may be of which evaluations are left out. In
MLPerf's logs it is at most 1.02; where other devices evaluate meanwhile, 3 to 9."""
MOST_TIMES = 2.0
"""How many times as fast as the run from its start on a window may be, where a program runs ahead
of its devices. Honest windows of MLPerf's logs are at most 1.12 times as fast, those of work that
was only queued 4 times."""


MOST_STEP_TIMES = 120  # of more step times, neighbours are put together: a picture shows no more


class Interval(NamedTuple):
    """A stretch of iterations whose time the log gives."""

    start: int  # the iteration at whose end it starts
    stop: int
    seconds: float
    rate: float | None  # the speed printed for it, in the format's own terms
    evaluated: float = 0.0  # seconds of evaluation in it; infinity if they are not known
    left_out: Evaluated = Evaluated()
    """The evaluations that lay between its ends, and whose time is none of its seconds."""
    also: float | None = None  # its seconds by the log's second clock, if it has one

    @property
    def trains(self) -> bool:
        """Whether all but a trifle of its time went into training."""
        return self.evaluated <= COARSEST * self.seconds


def step_times(records: Sequence[Record], log_format: Format) -> str:
    """How long the iterations of a run took, for those who look for warm-up, outliers and drift.

    Returns:
        `iteration:ms` with spaces between, of the first epoch: the mean milliseconds of the
        iterations up to this one since the one before it; "" if the log gives no times.
    """
    try:
        steps = intervals(first_prints(records, log_format)[0], log_format)
    except Refused:  # beyond the window, which has been measured
        return ""
    each = -(-len(steps) // MOST_STEP_TIMES) or 1
    groups = (steps[start : start + each] for start in range(0, len(steps), each))
    return " ".join(
        f"{group[-1].stop}:{1000 * fsum(s.seconds for s in group) / iterations:.5g}"
        for group in groups
        if (iterations := sum(step.stop - step.start for step in group)) > 0
    )


def first_prints(
    records: Sequence[Record], log_format: Format
) -> tuple[list[Record], Counter[int]]:
    """The records in which the window must lie: of the first epoch, each iteration once.

    Args:
        records: of one rank, in the log's order.

    Returns:
        The first record of each iteration, and how often an iteration is printed again.

    Raises:
        Refused: the iterations step back, as those of several ranks do.
    """
    slack = 0
    if Prints.REPEATS in log_format.prints:
        strides = [after.iteration - before.iteration for before, after in pairwise(records)]
        slack = max(strides, default=0)
    before = records[0]
    first, again = [before], []
    for record in records[1:]:
        if (record.epoch, record.iteration) > (before.epoch, before.iteration):
            first.append(record)
            before = record
        elif record.epoch != before.epoch or record.iteration < before.iteration - slack:
            raise Refused(
                "mixed-ranks",
                f"iteration {record.iteration} comes after {before.iteration}: a run was resumed "
                "there, or the lines of several ranks are mixed without labels",
            )
        else:
            again.append(record)
    epoch = records[0].epoch
    repeated = Counter(record.iteration for record in again if record.epoch == epoch)
    return [record for record in first if record.epoch == epoch], repeated


def intervals(
    records: Sequence[Record], log_format: Format, following: Sequence[Record] = ()
) -> list[Interval]:
    """The intervals whose time the log gives: between time stamps, or as printed.

    Args:
        records: of one rank and epoch, in order.
        following: the record that follows them, if one does.

    Raises:
        Refused: the log gives no times.
    """
    stamped = _stamped(records)
    if stamped:
        strides = (after.iteration - before.iteration for before, after in pairwise(stamped))
        stride = min(strides, default=0)
        if not log_format.mean_durations:
            stride = 0
        return [_between(before, after, log_format, stride) for before, after in pairwise(stamped)]
    if any(record.duration is None for record in records):
        raise Refused("no-times", log_format.untimed)
    if Prints.IN_TWO_LINES in log_format.prints:
        pairs = pairwise([*records, *following])
        holes = {one for one, after in pairs if after.iteration - after.span > one.iteration}
        records = [record for record in records if record not in holes]
    distances = (after.iteration - before.iteration for before, after in pairwise(records))
    widest = gcd(*distances) if Prints.EVENLY in log_format.prints and len(records) > 1 else inf
    # What a first line covers that begins in the middle is unknown.
    known = widest == inf or records[0].span in (widest, records[0].iteration)
    unknown = None if known else records[0]
    return [
        Interval(
            record.iteration - record.span,
            record.iteration,
            record.duration or 0.0,
            record.rate,
            record.evaluated,
        )
        for record in records
        if 0 < record.span <= widest and record is not unknown
    ]


def _between(before: Record, after: Record, log_format: Format, stride: int) -> Interval:
    """The interval between two stamps, without the evaluations of which all is known.

    A printed duration may hold the evaluations before it, or not: they cannot be left out.
    """
    assert log_format.clock
    assert before.time is not None
    assert after.time is not None
    seconds = log_format.clock.between(before.time, after.time)
    evaluated, left_out = after.evaluated, Evaluated()
    if 0 < evaluated < seconds:
        left_out = Evaluated(after.evaluations, evaluated)
        seconds, evaluated = seconds - evaluated, 0.0
    also = _by_second_clock(before, after, stride)
    if also is not None:
        also -= left_out.seconds
    return Interval(
        before.iteration, after.iteration, seconds, after.rate, evaluated, left_out, also
    )


def _by_second_clock(before: Record, after: Record, stride: int) -> float | None:
    """The seconds between two records with time stamps, by the log's second clock.

    A printed mean is taken over `stride` iterations; where more lie between, a line is lost. 0: no
    mean is printed.
    """
    if before.stamp is not None and after.stamp is not None:
        return after.stamp - before.stamp
    if stride == after.iteration - before.iteration and after.span and after.duration is not None:
        return after.duration / after.span * stride
    return None


def _stamped(records: Sequence[Record]) -> list[Record]:
    """The records with a time stamp, each with the evaluations since the one before it."""
    stamped, evaluated, evaluations = [], 0.0, 0
    for record in records:
        evaluated += record.evaluated
        evaluations += record.evaluations
        if record.time is not None:
            if evaluated != record.evaluated:
                record = record._replace(evaluated=evaluated, evaluations=evaluations)  # noqa: PLW2901
            stamped.append(record)
            evaluated, evaluations = 0.0, 0
    return stamped


def uncertainty(records: Sequence[Record], inside: Sequence[Interval]) -> float:
    """The seconds that the steps of the log's clock leave open in the time of some intervals."""
    tick = tick_of(records, inside)
    if records[0].time is None:
        return len(inside) * tick / 2
    return tick + MLLOG_TICK * sum(step.left_out.count for step in inside)


def tick_of(records: Sequence[Record], inside: Sequence[Interval]) -> float:
    """The step, in seconds, of the clock that times some intervals.

    Some programs drop the zeros at a number's end: 0.35 may be 0.350000. So durations are as fine
    as most of a log's lines show. Of stamps, those at both ends must be as fine themselves.
    """
    if records[0].time is None:
        return median_high(record.tick for record in records)
    ends = {inside[0].start, inside[-1].stop}
    return max(record.tick for record in records if record.iteration in ends)


def times_as_fast(inside: Sequence[Interval], steps: Sequence[Interval]) -> float:
    """How many times as fast a window is as the run from its start on, evaluations left out.

    The time that the run's evaluations took may be unknown.
    """
    # What follows an evaluation waits for no work that was queued before it: a window that reaches
    # across some is as fast as its fastest stretch between them.
    between = groupby(inside, lambda step: not step.left_out.count)
    parts = [list(part) for evaluates_not, part in between if evaluates_not]
    return max(_times_as_fast(part, steps) for part in (inside, *parts))


def _times_as_fast(inside: Sequence[Interval], steps: Sequence[Interval]) -> float:
    later = [step for step in steps if step.start >= inside[0].start and step.evaluated < inf]
    seconds = fsum(max(0.0, step.seconds - step.evaluated) for step in later)
    counted = sum(step.stop - step.start for step in later)
    if not seconds or not counted:
        return 1.0
    return _pace(inside) * seconds / counted


def trains_meanwhile(inside: Sequence[Interval], steps: Sequence[Interval]) -> float:
    """How many times as fast as any other stretch a window's are whose evaluations are left out.

    Above AT_ONCE, training went on while they ran.
    """
    left = [step for step in inside if step.left_out.count]
    others = [
        step for step in steps if not step.left_out.count and step.trains and step.seconds > 0
    ]
    return _pace(left) / max(_pace([step]) for step in others) if left and others else 1.0


def _pace(steps: Sequence[Interval]) -> float:
    return sum(step.stop - step.start for step in steps) / fsum(step.seconds for step in steps)


def check_evaluations(steps: Sequence[Interval], where: str) -> None:
    """Check that evaluations take no more than a trifle of the time of some steps."""
    seconds = fsum(step.seconds for step in steps)
    evaluated = fsum(step.evaluated for step in steps)
    if evaluated <= max(0.0, COARSEST * seconds):  # time may step back
        return
    first = next(step for step in steps if step.evaluated)
    much = "" if evaluated == inf else f" and take {evaluated:.6g} of its {seconds:.6g} s"
    raise Refused(
        "evaluations",
        f"evaluations lie in {where}{much}: the first between the iterations {first.start} "
        f"and {first.stop}",
    )
