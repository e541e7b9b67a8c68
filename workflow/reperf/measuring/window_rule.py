"""The window rule: (samples between two printed iterations) / (time between them).

Both ends are lines of one rank. Whatever makes the number doubtful is a refusal. Tokens may be
counted instead of samples, or whatever else the log counts at both ends.
"""

from collections import Counter
from collections.abc import Sequence
from math import fsum
from typing import Any

from reperf.logs.facts import Fact, Facts, Refused
from reperf.logs.format import Format, Record
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.intervals import (
    COARSEST,
    MOST_TIMES,
    Interval,
    check_evaluations,
    first_prints,
    intervals,
    times_as_fast,
    uncertainty,
)
from reperf.measuring.step_size import in_unit, step_samples
from reperf.measuring.units import ANY
from reperf.measuring.window_counts import (
    check_samples,
    check_skipped,
    counts_at,
    difference,
    growth,
    waited_share,
)

SLOWEST, FASTEST = 1e-9, 1e15
"""The range of throughputs, in samples per second, outside which none is believed."""


def by_window(
    run: LoggedRun,
    log_format: Format,
    choices: Sequence[tuple[int, int]],
    facts: Facts,
    count: str | None = None,
) -> dict[str, Any]:
    """Measure a run between the ends of a window.

    Args:
        run: what the log holds of it.
        log_format: the log's format.
        choices: pairs of ends, as the log numbers its iterations; the first pair it prints is used.
        facts: what is known about the run.
        count: what to count, by the log's own name for it; None: samples, from the batch size.

    Returns:
        first, last, samples (or what else is counted), seconds, throughput, the share of the
        seconds that training waited for its data, or None, and all that was counted, by name.

    Raises:
        Refused: the log does not carry the window.
    """
    records, repeated = first_prints(run.records, log_format)
    steps = intervals(records, log_format, run.later[:1])
    ends = next((ends for ends in choices if not _holes(_inside(steps, ends), ends)), choices[0])
    inside = _inside(steps, ends)
    _listen(records, ends, log_format, facts)
    for step in inside:
        if step.seconds < 0:
            raise Refused(
                f"time steps back by {-step.seconds:.6g} s between the iterations {step.start} "
                f"and {step.stop}"
            )
    _check_repeats(repeated, records, ends)
    check_evaluations(inside, "the window")
    holes = _holes(inside, ends)
    seconds = fsum(step.seconds for step in inside)
    if not holes:
        _check_clock(records, inside, seconds)  # before it makes a speed of too few seconds
    reached, what = _reached(run, records)
    if holes and reached >= ends[1]:
        start, stop = holes[0]
        raise Refused(
            f"the time from iteration {start} to {stop} is not in the log: printed are "
            + _some([record.iteration for record in records])
            + in_unit(run, log_format, facts)
        )
    batch = step_samples(steps if holes else inside, log_format, facts)
    if holes:
        raise Refused(
            f"too short: {what} ends at iteration {reached}, the window at {ends[1]}"
            + in_unit(run, log_format, facts)
        )
    _check_end(run, records[0].epoch, ends[1])
    if log_format.runs_ahead:
        _check_ahead(run, log_format, inside)
    exact = (ends[1] - ends[0]) * (batch or facts.need(log_format.step_is[0]))
    samples = int(exact)
    if samples != exact:
        raise Refused(f"the window holds {float(exact):.6g} samples, which is no whole number")
    counts = counts_at(records, ends, log_format)
    check_samples(counts, samples)
    check_skipped(counts)
    counted = samples if count is None else difference(counts, ends, count)
    speed = counted / seconds
    if not SLOWEST <= speed <= FASTEST:
        what = f"{counted} {count or ANY} in {seconds:g} s"
        raise Refused(f"{what} are no speed that any training has")
    return {
        "first": ends[0],
        "last": ends[1],
        "samples": counted,
        "seconds": seconds,
        "throughput": speed,
        "waited": waited_share(counts, seconds),
        "counted": {ANY: samples, **growth(counts)},
    }


def _check_repeats(
    repeated: Counter[int], records: Sequence[Record], ends: tuple[int, int]
) -> None:
    """Check that no iteration in the window is printed again, nor the one whose time begins it."""
    for iteration in sorted(repeated):
        # A stamp is that of the iteration's end, a duration that of the iteration itself.
        first = ends[0] + (records[0].time is None)
        if first <= iteration < first + ends[1] - ends[0]:
            mixed = "the lines of several ranks are mixed without labels"
            if 2 * len(repeated) <= len(records):
                mixed = f"steps in the window were skipped, as loss scaling does, or {mixed}"
            times = repeated[iteration] + 1
            raise Refused(f"iteration {iteration} is printed {times} times: {mixed}")


def _listen(
    records: Sequence[Record], ends: tuple[int, int], log_format: Format, facts: Facts
) -> None:
    """Take what the records of a window say about their run; if there are none, the first one.

    Raises:
        Refused: they disagree, or somebody else says otherwise.
    """
    heard = [record for record in records if ends[0] < record.iteration <= ends[1]]
    known: list[Fact] = []
    for record in heard or records[:1]:
        told = list(log_format.tells(record.text))
        if told != known:
            facts.add(f"the line of iteration {record.iteration}", told)
        known = told


def _reached(run: LoggedRun, records: Sequence[Record]) -> tuple[int, str]:
    """The last iteration in which a window may end, and of what it is the last."""
    epoch = records[0].epoch
    if run.newest.epoch != epoch:
        return records[-1].iteration, f"epoch {epoch}"
    return run.newest.iteration, "it"


def _check_end(run: LoggedRun, epoch: int, last: int) -> None:
    """Check that the run came to its end, if the log's format says so, and after the window's."""
    if run.ends is None:
        return
    if not run.ends and run.stopped_as:
        raise Refused(f"the log says that the run stopped as {run.stopped_as}, without success")
    if not run.ends:
        raise Refused("the end of the run is not in the log: it is cut, or the run broke off")
    early = run.ends[0]
    if (early.epoch, early.iteration) < (epoch, last):
        raise Refused(
            f"the log says that the run ended at iteration {early.iteration}, before the window "
            f"does at {last}, and goes on"
        )


def _check_ahead(run: LoggedRun, log_format: Format, inside: Sequence[Interval]) -> None:
    """Check that the lines of a window were not printed before their work was done."""
    records, _ = first_prints(run.first_epoch, log_format)
    times = times_as_fast(inside, intervals(records, log_format))
    if times > MOST_TIMES:
        raise Refused(
            f"the window is {times:.3g} times as fast as the run from its start on, evaluations "
            "left out: its lines seem to be printed before their work is done"
        )


def _inside(steps: Sequence[Interval], ends: tuple[int, int]) -> list[Interval]:
    return [step for step in steps if ends[0] <= step.start and step.stop <= ends[1]]


def _holes(inside: Sequence[Interval], ends: tuple[int, int]) -> list[tuple[int, int]]:
    """The stretches of a window that no interval covers."""
    edges = [ends[0], *(step.stop for step in inside)]
    starts = [*(step.start for step in inside), ends[1]]
    return [hole for hole in zip(edges, starts, strict=True) if hole[0] != hole[1]]


def _some(iterations: Sequence[int]) -> str:
    shown = [str(iteration) for iteration in iterations]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "..", shown[-1]])


def _check_clock(records: Sequence[Record], inside: Sequence[Interval], seconds: float) -> None:
    """Check that the clock moves, and is fine enough for the window."""
    if seconds == 0:
        raise Refused("no time passes in the window, by the log's own clock")
    if uncertainty(records, inside) > COARSEST * seconds:
        tick = max(record.tick for record in records)
        raise Refused(
            f"the log's times are printed in steps of {tick:g} s, too coarse for {seconds:.6g} s"
        )
