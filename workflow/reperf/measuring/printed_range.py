"""What a log prints of a run: from which iteration to which, how often, and the widest window."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from reperf.logs.facts import Facts, Refused
from reperf.logs.format import Format
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.intervals import COARSEST, Interval, first_prints, intervals, uncertainty
from reperf.measuring.step_size import warm_up

Ends = tuple[int, int]
"""The iterations at whose ends a window starts and stops, as the log numbers them."""


class Printed(NamedTuple):
    """The iterations that a log prints of a run's measured rank."""

    first: int
    last: int
    interval: int | None
    """The most frequent distance between two of them; None if there is only one."""


def printed(run: LoggedRun) -> Printed:
    """Which iterations a log prints, as it numbers them."""
    steps = [
        after.iteration - before.iteration
        for before, after in pairwise(run.first_epoch)
        if before.iteration < after.iteration
    ]
    common = Counter(steps).most_common(1)
    return Printed(run.records[0].iteration, run.newest.iteration, common[0][0] if common else None)


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
    stretches = list(_stretches(steps, first, doubtful))
    if not stretches:
        return None
    best = max(stretches, key=lambda steps: steps[-1].stop - steps[0].start)
    if not stamped and best[-1].stop - best[0].start < (printed(run).interval or 1):
        return None  # lines tell of single iterations, and not of those between them
    seconds = sum(step.seconds for step in best)
    if seconds <= 0 or uncertainty(records, best) > COARSEST * seconds:
        return None
    return best[0].start, best[-1].stop


def _stretches(
    steps: Sequence[Interval], first: int, doubtful: Container[Interval]
) -> Iterator[list[Interval]]:
    """Intervals behind the warm-up that follow each other and hold nothing but training."""
    stretch: list[Interval] = []
    for step in steps:
        fits = step.start >= first and step.seconds >= 0 and step.trains
        fits = fits and step not in doubtful
        if stretch and (not fits or stretch[-1].stop != step.start):
            yield stretch
            stretch = []
        if fits:
            stretch.append(step)
    if stretch:
        yield stretch
