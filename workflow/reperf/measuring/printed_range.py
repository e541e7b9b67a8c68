"""What a log prints of a run: from which iteration to which, how often, and the widest window."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf

from reperf.logs.facts import Fact, Facts, Refused
from reperf.logs.format import Format
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.intervals import (
    COARSEST,
    MOST_TIMES,
    Interval,
    first_prints,
    intervals,
    times_as_fast,
    uncertainty,
)
from reperf.measuring.step_size import warm_up

Ends = tuple[int, int]
"""The iterations at whose ends a window starts and stops, as the log numbers them."""


def printed(run: LoggedRun) -> dict[str, int | None]:
    """Which iterations a log prints of a run's measured rank, in the epoch of the window.

    Returns:
        first_printed, last_printed and interval, as in a Measurement.
    """
    records = run.first_epoch
    steps = [
        after.iteration - before.iteration
        for before, after in pairwise(records)
        if before.iteration < after.iteration
    ]
    common = Counter(steps).most_common(1)
    last = run.newest if run.newest.epoch == records[0].epoch else records[-1]
    return {
        "first_printed": records[0].iteration,
        "last_printed": last.iteration,
        "interval": common[0][0] if common else None,
    }


def widest(run: LoggedRun, log_format: Format, facts: Facts, warmup: int) -> Ends | None:
    """The widest window that the rule allows in a run; None if there is none.

    Args:
        run: what the log holds of it.
        log_format: the log's format.
        facts: what is known about the run.
        warmup: how many batches must come before the window.
    """
    if run.ends is not None and not run.ends:
        return None  # the rule takes no window of a run that broke off
    try:
        records, repeated = first_prints(run.first_epoch, log_format)
        if run.ends and run.ends[0].epoch == records[0].epoch:
            records = [one for one in records if one.iteration <= run.ends[0].iteration]
        steps = intervals(records, log_format)
        first = warm_up(steps, log_format, facts, warmup) - (1 - log_format.counts_from)
    except Refused:
        return None
    stamped = records[0].time is not None
    doubtful = [step for step in steps if (step.start if stamped else step.stop) in repeated]
    told = {record.iteration: tuple(log_format.tells(record.text)) for record in records}
    # Of a run with too many lines, the rest is there for comparison alone.
    reach = run.last if run.overflow else inf
    within = [step for step in steps if step.stop <= reach]
    stretches = list(_stretches(within, first, doubtful, told))
    if not stretches:
        return None
    best = max(stretches, key=lambda steps: steps[-1].stop - steps[0].start)
    if not stamped and best[-1].stop - best[0].start < (printed(run)["interval"] or 1):
        return None  # lines tell of single iterations, and not of those between them
    seconds = sum(step.seconds for step in best)
    timed = seconds > 0 and uncertainty(records, best) <= COARSEST * seconds
    if timed and log_format.runs_ahead:
        timed = times_as_fast(best, steps) <= MOST_TIMES
    return (best[0].start, best[-1].stop) if timed else None


def _stretches(
    steps: Sequence[Interval],
    first: int,
    doubtful: Container[Interval],
    told: Mapping[int, tuple[Fact, ...]],
) -> Iterator[list[Interval]]:
    """Intervals behind the warm-up that follow each other and hold nothing but training.

    The lines of each stretch tell the same facts.
    """
    stretch: list[Interval] = []
    for step in steps:
        fits = step.start >= first and step.seconds >= 0 and step.trains
        fits = fits and step not in doubtful
        if stretch and not (
            fits
            and stretch[-1].stop == step.start
            and told.get(stretch[-1].stop) == told.get(step.stop)
        ):
            yield stretch
            stretch = []
        if fits:
            stretch.append(step)
    if stretch:
        yield stretch
