"""The window rule: (samples between two printed iterations) / (time between them).

Both ends are lines of one rank. Whatever makes the number doubtful is a refusal. Tokens may be
counted instead of samples, or whatever else the log counts at both ends.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from math import fsum, inf
from typing import Any

from reperf.logs.checks import Refused
from reperf.logs.facts import COMMAND_LINE, Fact, Facts
from reperf.logs.format import SEEN, Format, Record
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.counts import (
    ANY,
    amount_of,
    check_counts,
    check_seen,
    counted_between,
    growing,
    waited_share,
)
from reperf.measuring.intervals import (
    COARSEST,
    Interval,
    check_evaluations,
    first_prints,
    intervals,
)
from reperf.measuring.run_checks import (
    WindowOfRun,
    check_end,
    check_not_ahead,
    check_order,
    check_times,
)
from reperf.measuring.step_size import cut_short, denied, step_samples, warm_up

SLOWEST, FASTEST = 1e-9, 1e15
"""The range of throughputs, in samples per second, outside which none is believed."""

Ends = tuple[int, int]
"""The iterations at whose ends a window starts and stops, as the log numbers them."""


def by_window(
    run: LoggedRun,
    log_format: Format,
    choices: Sequence[Ends],
    facts: Facts,
    count: str | None = None,
    *,
    lines: Sequence[Record] | None = None,
) -> dict[str, Any]:
    """Measure a run between the ends of a window.

    Args:
        choices: pairs of ends, as the log numbers its iterations; the first pair it prints is used.
        count: what to count, by the log's own name for it; None: samples, from the batch size.
        lines: the records in which the window must lie; None: those that are needed for it.

    Returns:
        first, last, samples (or what else is counted), seconds, throughput, the evaluations that
        were left out and their seconds, the share of the seconds that training waited for its data,
        or None, all that was counted, by name, and the warnings.

    Raises:
        Refused: the log does not carry the window.
    """
    records, repeated = first_prints(lines or run.records, log_format)
    steps = intervals(records, log_format, run.later[:1])
    windows = [
        WindowOfRun(run, log_format, facts, records, repeated, ends, _inside(steps, ends))
        for ends in choices
    ]
    window = next((window for window in windows if not window.holes), windows[0])
    ends, inside, seconds = window.ends, window.steps, window.seconds
    _add_facts(records, ends, facts)
    check_order(window)
    check_evaluations(inside, "the window")
    holes = window.holes  # with some, the speed would be one of too few seconds
    warnings = () if holes else check_times(window)
    reached, what = _reached(run, records)
    if holes and reached >= ends[1]:
        start, stop = holes[0]
        raise Refused(
            "hole",
            f"the time from iteration {start} to {stop} is not in the log: printed are "
            + _listed([record.iteration for record in records])
            + _alone(steps, records),
        )
    batch = step_samples(steps if holes else inside, log_format, facts)
    if holes:
        why = f"too short: {what} ends at iteration {reached}, the window at {ends[1]}"
        raise Refused("too-short", why)
    check_end(run, records[0].epoch, ends[1])
    if (short := cut_short(steps, log_format)) and short in inside:
        raise Refused(
            "speed",
            f"the step from {short.start} to {short.stop} was not trained to its end, by the speed "
            "that is printed for it",
        )
    check_not_ahead(window)
    exact = window.iterations * (batch or facts.need(log_format.step_is[0]))
    samples = int(exact)
    if samples != exact:
        why = f"the window holds {float(exact):.6g} samples, which is no whole number"
        raise Refused("counts", why)
    counts = counted_between(records, ends)
    check_counts(counts, samples)
    check_seen(records, ends, samples, facts)
    facts.batch_fits |= ANY in counts or (SEEN in counts and bool(facts.get("sample_tokens")))
    amount = samples if count is None else amount_of(counts, count, samples, facts)
    speed = amount / seconds
    if not SLOWEST <= speed <= FASTEST:
        why = f"implausible throughput: {amount} {count or ANY} in {seconds:g} s"
        raise Refused("impossible", why)
    return {
        "first": ends[0],
        "last": ends[1],
        "samples": amount,
        "seconds": seconds,
        "throughput": speed,
        "evaluations": sum(step.left_out.count for step in inside),
        "evaluated": round(fsum(step.left_out.seconds for step in inside), 6),
        "waited": waited_share(counts, seconds),
        "counted": {ANY: samples} | growing(counts),
        "warnings": (*warnings, *_implied(facts, counts.get(SEEN), samples)),
    }


def _implied(facts: Facts, seen: float | None, samples: int) -> Iterator[str]:
    """What follows from a batch that a person gives, if no line of the log can contradict it.

    Args:
        seen: the tokens that the lines count in the window; None: they count none.
    """
    step, length, sources = facts.get("step_tokens"), facts.get("sample_tokens"), facts.sources()
    if step and " and " in sources.get("sample_tokens", ""):
        counted = f"{step} tokens a step"
    elif seen and not length:
        counted, length = f"{seen:.3g} tokens in the window", round(seen / samples)
    else:
        if COMMAND_LINE in sources.get("global_batch", "") and not facts.batch_fits:
            yield (
                f"given-batch: {COMMAND_LINE} gives the batch, and the log prints no speed or "
                "count that could contradict it"
            )
        return
    yield (
        f"implied-length: the log counts {counted}; with a global batch of "
        f"{facts.need('global_batch')} by {sources['global_batch']}, a sample has {length} tokens"
    )


def _inside(steps: Sequence[Interval], ends: Ends) -> list[Interval]:
    return [step for step in steps if ends[0] <= step.start and step.stop <= ends[1]]


def _add_facts(records: Sequence[Record], ends: Ends, facts: Facts) -> None:
    """Take what the records of a window say about their run; if there are none, the first one."""
    inside = [record for record in records if ends[0] < record.iteration <= ends[1]]
    known: tuple[Fact, ...] = ()
    for record in inside or records[:1]:
        if record.facts != known:
            facts.add(f"the line of iteration {record.iteration}", record.facts)
        known = record.facts


def _reached(run: LoggedRun, records: Sequence[Record]) -> tuple[int, str]:
    """The last iteration in which a window may end, and of what it is the last."""
    epoch = records[0].epoch
    assert run.newest
    if run.newest.epoch != epoch:
        return records[-1].iteration, f"epoch {epoch}"
    return run.newest.iteration, "it"


def _alone(steps: Sequence[Interval], records: Sequence[Record]) -> str:
    """What to say of lines that each time one iteration, and of which some iterations have none."""
    pairs = pairwise(record.iteration for record in records)
    if not steps or any(step.stop - step.start > 1 for step in steps):
        return ""
    if all(later - earlier == 1 for earlier, later in pairs):
        return ""
    return (
        "; each line times one iteration, and nothing times those between two lines; where it is "
        "their mean, a --pattern says so by the group span"
    )


def _listed(iterations: Sequence[int]) -> str:
    """Iterations for a message: of many, the first three and the last."""
    shown = [str(iteration) for iteration in iterations]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "..", shown[-1]])


def printed(run: LoggedRun) -> dict[str, int | None]:
    """Which iterations a log prints of a run's measured rank, in the epoch of the window.

    Returns:
        first_printed, last_printed and interval, as in a Measurement.
    """
    records = run.first_epoch
    strides = Counter(after.iteration - before.iteration for before, after in pairwise(records))
    common = [(stride, times) for stride, times in strides.most_common() if stride > 0]
    return {
        "first_printed": records[0].iteration,
        "last_printed": _reached(run, records)[0],
        "interval": common[0][0] if common else None,
    }


def widest(
    run: LoggedRun, log_format: Format, facts: Facts, warmup: int, count: str | None = None
) -> tuple[dict[str, Any], Facts]:
    """Measure a run in the widest window that the rule allows after a warm-up of so many batches.

    Evaluations that are left out of a window are known by their stamps only: a window without
    evaluations, or with a trifle, is preferred. If neither is allowed because training paused in
    some intervals, by their printed speeds, the widest window between these is taken.

    Args:
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
    short = cut_short(steps, log_format)
    doubtful = [
        step
        for step in steps
        if (step.start if stamped else step.stop) in repeated
        or any(step.start < again <= step.stop for again in run.restarts)
        or step is short
    ]
    facts_of_lines = {record.iteration: record.facts for record in records}
    # Of a run with too many lines, the rest is there for comparison alone.
    reach = run.last if run.overflow else inf
    within = [step for step in steps if step.stop <= reach]
    lacking = [step for step in steps if step.left_out.seconds > COARSEST * step.seconds]
    refusal: Refused | None = None
    choices = [[*doubtful, *lacking], doubtful]
    if paused := denied(steps):
        choices.append([*doubtful, *lacking, *paused])
    for barred in choices:
        stretches = _stretches(within, first, barred, facts_of_lines)
        best = max(stretches, key=lambda steps: steps[-1].stop - steps[0].start, default=None)
        if best is None:
            continue
        ends = best[0].start, best[-1].stop
        if not stamped and ends[1] - ends[0] < (printed(run)["interval"] or 1):
            refusal = Refused(
                "hole",
                f"the time from iteration {records[0].iteration} to {records[-1].iteration} is not "
                f"in the log: its lines time {ends[1] - ends[0]} at most, and not those between",
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
    after = [step for step in steps if step.start >= first]
    if after and not any(step.trains for step in after):
        check_evaluations(after, "every stretch of the log after the warm-up")
    source = f"the line of iteration {records[-1].iteration}"
    known = deepcopy(facts).add(source, records[-1].facts)
    if step_samples(steps, log_format, known) is None:
        known.need(log_format.step_is[0])
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
    facts: Mapping[int, tuple[Fact, ...]],
) -> Iterator[list[Interval]]:
    """Intervals after the warm-up that follow each other and hold nothing but training.

    The lines of each stretch give the same facts.
    """
    stretch: list[Interval] = []
    for step in steps:
        if step.start < first or step.seconds < 0 or not step.trains or step in doubtful:
            continue
        before = stretch[-1].stop if stretch else step.start
        if before != step.start or (stretch and facts.get(before) != facts.get(step.stop)):
            yield stretch
            stretch = []
        stretch.append(step)
    if stretch:
        yield stretch
