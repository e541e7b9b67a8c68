"""What a log prints of a run: from which iteration to which, how often, and the widest window."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from math import inf
from typing import Any

from reperf.logs.checks import Refused
from reperf.logs.facts import Fact, Facts
from reperf.logs.format import Format
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.intervals import (
    COARSEST,
    Interval,
    check_evaluations,
    first_prints,
    intervals,
)
from reperf.measuring.step_size import cut_short, step_samples, warm_up
from reperf.measuring.window_rule import by_window, check_end

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


def widest(
    run: LoggedRun, log_format: Format, facts: Facts, warmup: int, count: str | None = None
) -> tuple[dict[str, Any], Facts]:
    """Measure a run in the widest window that the rule allows after the warm-up.

    Evaluations that are left out of a window are known by their stamps only: a window without
    evaluations, or with a trifle, is preferred.

    Args:
        run: what its log holds.
        log_format: the log's format.
        facts: what is known about the run.
        warmup: how many batches must come before the window.
        count: what to count, as for `by_window`.

    Returns:
        What `by_window` gives, and the facts with what the window's lines say.

    Raises:
        Refused: the rule allows no window.
    """
    check_end(run, run.records[0].epoch, run.records[0].iteration)
    records, repeated = first_prints(run.first_epoch, log_format)
    if run.ends and run.ends[0].epoch == records[0].epoch:
        records = [record for record in records if record.iteration <= run.ends[0].iteration]
    steps = intervals(records, log_format)
    first = warm_up(steps, log_format, facts, warmup) - (1 - log_format.counts_from)
    stamped = records[0].time is not None
    doubtful = [step for step in steps if (step.start if stamped else step.stop) in repeated]
    doubtful += [
        step for step in steps if any(step.start < again <= step.stop for again in run.restarts)
    ]
    if short := cut_short(steps, log_format):
        doubtful.append(short)
    told = {record.iteration: record.facts for record in records}
    # Of a run with too many lines, the rest is there for comparison alone.
    reach = run.last if run.overflow else inf
    within = [step for step in steps if step.stop <= reach]
    lacking = [step for step in steps if step.left_out.seconds > COARSEST * step.seconds]
    refusal: Refused | None = None
    for barred in ([*doubtful, *lacking], doubtful):
        if not (stretches := list(_stretches(within, first, barred, told))):
            continue
        best = max(stretches, key=lambda steps: steps[-1].stop - steps[0].start)
        ends = best[0].start, best[-1].stop
        if not stamped and ends[1] - ends[0] < (printed(run)["interval"] or 1):
            refusal = Refused(
                "hole",
                f"the time from iteration {records[0].iteration} to {records[-1].iteration} is not "
                f"in the log: its lines tell of {ends[1] - ends[0]} at most, and not of those "
                "between",
            )
            continue
        known = deepcopy(facts)
        try:
            lines = [*run.records, *run.later]
            return by_window(run, log_format, [ends], known, count, lines=lines), known
        except Refused as why:
            refusal = why
    if refusal:
        raise refusal
    behind = [step for step in steps if step.start >= first]
    if behind and not any(step.trains for step in behind):
        check_evaluations(behind, "every stretch of the log after the warm-up")
    if step_samples(steps, log_format, facts) is None:
        facts.need(log_format.step_is[0])
    start, stop = records[0].iteration, records[-1].iteration
    if not steps and len(records) > 1:
        raise Refused(
            "hole",
            f"the time from iteration {start} to {stop} is not in the log: nothing shows how many "
            "iterations the time of a line is of",
        )
    raise Refused(
        "too-short",
        f"the log allows no window after a warm-up of {warmup} iterations: printed are {start} to "
        f"{stop}",
    )


def _stretches(
    steps: Sequence[Interval],
    first: int,
    doubtful: Container[Interval],
    told: Mapping[int, tuple[Fact, ...]],
) -> Iterator[list[Interval]]:
    """Intervals after the warm-up that follow each other and hold nothing but training.

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
