"""What a log prints of a run: from which iteration to which, how often, and the widest window."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from reperf.logs.facts import Fact, Facts, Refused
from reperf.logs.format import Format, Record
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.intervals import (
    AT_ONCE,
    COARSEST,
    MOST_TIMES,
    Interval,
    check_evaluations,
    first_prints,
    intervals,
    times_as_fast,
    trains_meanwhile,
    uncertainty,
)
from reperf.measuring.step_size import cut_short, step_samples, warm_up
from reperf.measuring.window_rule import check_end

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
    assert run.newest
    last = run.newest if run.newest.epoch == records[0].epoch else records[-1]
    return {
        "first_printed": records[0].iteration,
        "last_printed": last.iteration,
        "interval": common[0][0] if common else None,
    }


class Widest(NamedTuple):
    """The widest window of a run that comes into question."""

    ends: Ends | None
    allowed: bool = False
    """Whether the rule takes it, by its times."""
    reason: str = ""
    """Why there is none."""


def widest(run: LoggedRun, log_format: Format, facts: Facts, warmup: int) -> Widest:
    """The widest window that the rule allows in a run, or else the widest to ask it about.

    Evaluations that are left out of a window are known by their stamps only: where a window does
    without, or with a trifle, it is taken.

    Args:
        warmup: how many batches must come before the window.
    """
    try:
        return _widest(run, log_format, facts, warmup)
    except Refused as refusal:
        return Widest(None, reason=str(refusal))


def _widest(run: LoggedRun, log_format: Format, facts: Facts, warmup: int) -> Widest:
    check_end(run, run.records[0].epoch, run.records[0].iteration)
    records, repeated = first_prints(run.first_epoch, log_format)
    if run.ends and run.ends[0].epoch == records[0].epoch:
        records = [one for one in records if one.iteration <= run.ends[0].iteration]
    steps = intervals(records, log_format)
    first = warm_up(steps, log_format, facts, warmup) - (1 - log_format.counts_from)
    stamped = records[0].time is not None
    doubtful = [step for step in steps if (step.start if stamped else step.stop) in repeated]
    doubtful += [
        step for step in steps if any(step.start < one <= step.stop for one in run.restarts)
    ]
    if short := cut_short(steps, log_format):
        doubtful.append(short)
    told = {record.iteration: record.facts for record in records}
    # Of a run with too many lines, the rest is there for comparison alone.
    reach = run.last if run.overflow else inf
    within = [step for step in steps if step.stop <= reach]
    lacking = [step for step in steps if step.left_out.seconds > COARSEST * step.seconds]
    found, allowed = None, False
    for barred in ([*doubtful, *lacking], doubtful):
        stretches = list(_stretches(within, first, barred, told))
        if not stretches:
            continue
        best = max(stretches, key=lambda steps: steps[-1].stop - steps[0].start)
        found = best[0].start, best[-1].stop
        allowed = _is_allowed(best, steps, records, log_format)
        if allowed:
            break
    if found is None:
        behind = [step for step in steps if step.start >= first]
        if behind and not any(step.trains for step in behind):
            check_evaluations(behind, "every stretch of the log behind the warm-up")
        if step_samples(steps, log_format, facts) is None:
            facts.need(log_format.step_is[0])
        if not steps and len(records) > 1:
            raise Refused(
                f"the time from iteration {records[0].iteration} to {records[-1].iteration} is not "
                "in the log: nothing shows how many iterations the time of a line is of"
            )
        raise Refused(
            f"the log allows no window behind a warm-up of {warmup} iterations: "
            f"printed are {records[0].iteration} to {records[-1].iteration}"
        )
    if not stamped and found[1] - found[0] < (printed(run)["interval"] or 1):
        raise Refused(
            f"the time from iteration {records[0].iteration} to {records[-1].iteration} is not in "
            f"the log: its lines tell of {found[1] - found[0]} at most, and not of those between"
        )
    return Widest(found, allowed)


def _is_allowed(
    stretch: Sequence[Interval],
    steps: Sequence[Interval],
    records: Sequence[Record],
    log_format: Format,
) -> bool:
    """Whether the rule takes a stretch of a run, by its times."""
    seconds = sum(step.seconds for step in stretch)
    if seconds <= 0 or uncertainty(records, stretch) > COARSEST * seconds:
        return False
    if log_format.runs_ahead and times_as_fast(stretch, steps) > MOST_TIMES:
        return False
    return trains_meanwhile(stretch, steps) <= AT_ONCE


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
