"""What a log prints of a run: from which iteration to which, how often, and the widest window."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from reperf.logs.facts import Refused
from reperf.logs.format import Format, Record
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.window_rule import COARSEST, Interval, intervals, uncertainty

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
        for before, after in pairwise([*run.records, *run.later])
        if before.epoch == after.epoch and before.iteration < after.iteration
    ]
    common = Counter(steps).most_common(1)
    return Printed(run.records[0].iteration, run.newest.iteration, common[0][0] if common else None)


def widest(run: LoggedRun, log_format: Format, warmup: int) -> Ends | None:
    """The widest window that the rule allows in a run; None if there is none.

    Args:
        run: what the log holds of it.
        log_format: the log's format.
        warmup: how many iterations must come before the window.
    """
    records = _of_first_epoch(run)
    first = warmup - (1 - log_format.counts_from)
    try:
        steps = intervals(records, log_format)
    except Refused:
        return None
    repeated = {step.stop for step in steps if step.start >= step.stop}
    stretches = list(_stretches(steps, first, repeated))
    if not stretches:
        return None
    best = max(stretches, key=lambda steps: steps[-1].stop - steps[0].start)
    seconds = sum(step.seconds for step in best)
    if seconds <= 0 or uncertainty(records, best) > COARSEST * seconds:
        return None
    return best[0].start, best[-1].stop


def _of_first_epoch(run: LoggedRun) -> list[Record]:
    """The records in which a window may lie, as far as the log says that the run went."""
    epoch = run.records[0].epoch
    records = [record for record in (*run.records, *run.later) if record.epoch == epoch]
    if run.ends and run.ends[0].epoch == epoch:
        records = [record for record in records if record.iteration <= run.ends[0].iteration]
    return records


def _stretches(
    steps: Sequence[Interval], first: int, repeated: set[int]
) -> Iterator[list[Interval]]:
    """Intervals without a hole, a step back of the clock, or an iteration printed twice."""
    stretch: list[Interval] = []
    for step in steps:
        if stretch and stretch[-1].stop != step.start:
            yield stretch
            stretch = []
        if step.start < first or step.seconds < 0 or {step.start, step.stop} & repeated:
            if stretch:
                yield stretch
            stretch = []
        else:
            stretch.append(step)
    if stretch:
        yield stretch
