"""What the published extractors do: their windows, their means, their rounding.

Source of all: github.com/Oneflow-Inc/DLPerf at c89430b, the extract_*.py beside each README. Each
function here returns one that estimates from a log's records, in the log's order, as `Format` wants
it. Too few lines are a refusal, even where an extractor would carry on.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, median

from reperf.logs.checks import Refused
from reperf.logs.clock import Clock
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Published, Record


def between_iterations(first: int, last: int, clock: Clock) -> Published:
    """As the window rule: from one iteration's time stamp to another's."""

    def estimate(records: Sequence[Record], facts: Facts) -> Estimate:
        ends = {record.iteration: record for record in records if record.iteration in (first, last)}
        if len(ends) < 2:
            raise Refused("method", f"the published window needs the iterations {first} and {last}")
        return _by_time(ends[first], ends[last], last - first, facts, clock)

    estimate.__doc__ = f"{first} to {last}, by time stamps"
    return estimate


def between_lines(
    first: int, last: int, clock: Clock, *, behind: int = -1, of_all_ranks: bool = False
) -> Published:
    """From the time stamp of one line to that of another, whatever their iterations.

    Args:
        first: number of the first line, from 1.
        behind: lines up to this iteration are not counted.
        of_all_ranks: every rank prints a line per iteration, and line numbers are per rank.
    """

    def estimate(records: Sequence[Record], facts: Facts) -> Estimate:
        lines = [record for record in records if record.iteration > behind]
        ranks = facts.need("world_size") if of_all_ranks else 1
        enough(lines, last * ranks)
        start, stop = lines[first * ranks - 1], lines[last * ranks - 1]
        return _by_time(start, stop, last - first, facts, clock)

    after = f" after iteration {behind}" if behind >= 0 else ""
    ranks = " times the number of ranks" if of_all_ranks else ""
    estimate.__doc__ = f"lines {first} to {last}{after}{ranks}, by time stamps"
    return estimate


def _by_time(start: Record, stop: Record, steps: int, facts: Facts, clock: Clock) -> Estimate:
    batch = facts.need("global_batch")
    if start.time is None or stop.time is None:
        raise Refused("method", "the lines carry no time stamps, which the published method needs")
    seconds = clock.between(start.time, stop.time)
    if seconds <= 0:
        why = f"time steps back between the iterations {start.iteration} and {stop.iteration}"
        raise Refused("clock", why)
    speed = round(float(batch) / (seconds / steps), 2)
    return Estimate(speed, start.iteration, stop.iteration, batch * steps, seconds)


Speed = Callable[[Record, Facts], float]  # that a line gives, in samples/s of all ranks


def mean_speed(start: int, stop: int, speed: Speed, *, exactly: bool = False) -> Published:
    """The arithmetic mean of the speeds of lines.

    Args:
        start: how many lines to leave out at the beginning.
        exactly: the extractor accepts no further lines.
    """

    def estimate(records: Sequence[Record], facts: Facts) -> Estimate:
        enough(records, stop, exactly=exactly)
        speeds = [speed(record, facts) for record in records[:stop]]
        mean = round(fmean(speeds[start:]), 2)
        return Estimate(mean, records[max(start, 1) - 1].iteration, records[stop - 1].iteration)

    only = f"; needs exactly {stop} lines" if exactly else ""
    estimate.__doc__ = f"arithmetic mean of {speed.__doc__} of lines {start + 1} to {stop}{only}"
    return estimate


def mean_of_rank_medians(start: int, stop: int, speed: Speed) -> Published:
    """Each rank prints a line per iteration: medians over ranks, then their arithmetic mean."""

    def estimate(records: Sequence[Record], facts: Facts) -> Estimate:
        ranks = facts.need("world_size")
        enough(records, stop * ranks, exactly=True)
        speeds = [speed(record, facts) for record in records]
        medians = [median(speeds[line : line + ranks]) for line in range(0, stop * ranks, ranks)]
        mean = round(fmean(medians[start:]), 2)
        return Estimate(mean, records[start * ranks - 1].iteration, records[-1].iteration)

    estimate.__doc__ = (
        f"medians over ranks, then the arithmetic mean of {start + 1} to {stop}; needs exactly "
        f"{stop} lines from each rank"
    )
    return estimate


def printed_speed(digits: int | None = None) -> Speed:
    """The speed that a line prints, rounded if the extractor rounds it."""

    def speed(record: Record, _facts: Facts) -> float:
        rate = needed(record.rate)
        return rate if digits is None else round(rate, digits)

    speed.__doc__ = "the printed speeds"
    return speed


def needed(value: float | None) -> float:
    """A value that the published method needs.

    Raises:
        Refused: the line does not print it.
    """
    if not value:
        raise Refused("method", "a line does not print what the published method needs")
    return value


def enough(lines: Sequence[Record], count: int, *, exactly: bool = False) -> None:
    """Check that there are as many lines as the published method reads.

    Raises:
        Refused: there are too few, or more than it accepts.
    """
    if len(lines) < count or (exactly and len(lines) > count):
        much = "exactly" if exactly else "at least"
        why = f"the published method needs {much} {count} lines, the log has {len(lines)}"
        raise Refused("method", why)
