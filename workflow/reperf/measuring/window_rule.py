"""The window rule: (samples between two printed iterations) / (time between them).

Both ends are lines of one rank. Whatever makes the number doubtful is a refusal. Tokens may be
counted instead of samples, or whatever else the log counts at both ends.
"""

from collections import Counter
from collections.abc import Sequence
from math import fsum, inf
from statistics import fmean, median
from typing import Any

from reperf.logs.clock import DATE, TIME_OF_DAY, YEARLESS, tick
from reperf.logs.facts import LOG, Fact, Facts, Refused
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
    tick_of,
    times_as_fast,
    trains_meanwhile,
    uncertainty,
)
from reperf.measuring.step_size import TOLERANCE, cut_short, in_unit, step_samples
from reperf.measuring.units import ANY, per_second
from reperf.measuring.window_counts import (
    check_samples,
    check_skipped,
    check_tokens,
    counts_at,
    growth,
    in_unit_of,
    waited_share,
)

BETWEEN_CLOCKS = 0.05
"""Seconds that may pass between the readings of two clocks for one line, as on a busy machine."""
OFF_PACE = 1.5
"""How many times as long an iteration of a window may take as most of its lines print, or as short:
what they print is a mean of a few iterations."""
FEWEST_PACES = 3
_HOUR = 3600.0
BETWEEN_MACHINES = 1.0
"""Seconds by which the wall clock of a run record may differ from that of its log."""
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
        choices: pairs of ends, as the log numbers its iterations; the first pair it prints is used.
        count: what to count, by the log's own name for it; None: samples, from the batch size.

    Returns:
        first, last, samples (or what else is counted), seconds, throughput, the evaluations that
        were left out and their seconds, the share of the seconds that training waited for its data,
        or None, and all that was counted, by name.

    Raises:
        Refused: the log does not carry the window.
    """
    records, repeated = first_prints(run.records, log_format)
    steps = intervals(records, log_format, run.later[:1])
    ends = next((ends for ends in choices if not _holes(_inside(steps, ends), ends)), choices[0])
    inside = _inside(steps, ends)
    _listen(records, ends, facts)
    for again in run.restarts:
        if ends[0] < again <= ends[1]:
            raise Refused(
                f"before iteration {again}, the log says again what it says at its start: the "
                "program was started anew in the window"
            )
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
        if log_format.clock in (DATE, YEARLESS, TIME_OF_DAY):
            _check_summer_time(inside)
        _check_second_clock(inside, log_format, facts)
        _check_pace(records, ends, seconds, least=log_format.busy_paces)
        _check_means(records, ends, seconds, log_format, facts)
        _check_span(records, ends, seconds, facts)
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
    check_end(run, records[0].epoch, ends[1])
    if (short := cut_short(steps, log_format)) in inside:
        raise Refused(
            f"the step from {short.start} to {short.stop} was not trained to its end, by the speed "
            "that is printed for it"
        )
    _check_whole(run, log_format, inside)
    exact = (ends[1] - ends[0]) * (batch or facts.need(log_format.step_is[0]))
    samples = int(exact)
    if samples != exact:
        raise Refused(f"the window holds {float(exact):.6g} samples, which is no whole number")
    counts = counts_at(records, ends)
    check_samples(counts, samples)
    check_tokens(counts, samples, facts)
    check_skipped(counts)
    counted = in_unit_of(count, counts, ends, samples, facts) if count else samples
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
        "evaluations": sum(step.left_out.count for step in inside),
        "evaluated": round(fsum(step.left_out.seconds for step in inside), 6),
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


def _listen(records: Sequence[Record], ends: tuple[int, int], facts: Facts) -> None:
    """Take what the records of a window say about their run; if there are none, the first one.

    Raises:
        Refused: they disagree, or somebody else says otherwise.
    """
    heard = [record for record in records if ends[0] < record.iteration <= ends[1]]
    known: list[Fact] = []
    for record in heard or records[:1]:
        told = list(record.facts)
        if told != known:
            facts.add(f"the line of iteration {record.iteration}", told)
        known = told


def _reached(run: LoggedRun, records: Sequence[Record]) -> tuple[int, str]:
    """The last iteration in which a window may end, and of what it is the last."""
    epoch = records[0].epoch
    assert run.newest
    if run.newest.epoch != epoch:
        return records[-1].iteration, f"epoch {epoch}"
    return run.newest.iteration, "it"


def check_end(run: LoggedRun, epoch: int, last: int) -> None:
    """Check that the run came to its end, if the log's format says so, and after the window's.

    Args:
        epoch: that of the window.
        last: the iteration at whose end the window stops.

    Raises:
        Refused: it did not.
    """
    if run.ends is None:
        return
    if not run.ends and run.stopped_as:
        raise Refused(f"the log says that the run stopped as {run.stopped_as}, without success")
    if not run.ends:
        raise Refused("the end of the run is not in the log: the log is cut, or the run broke off")
    early = run.ends[0]
    if (early.epoch, early.iteration) < (epoch, last):
        raise Refused(
            f"the log says that the run ended at iteration {early.iteration}, before the window "
            f"does at {last}, and goes on"
        )


def _check_whole(run: LoggedRun, log_format: Format, inside: Sequence[Interval]) -> None:
    """Check a window against the whole run: what it trained was done between its lines."""
    if not (log_format.runs_ahead or any(step.left_out.count for step in inside)):
        return  # what follows takes time
    records, _ = first_prints(run.first_epoch, log_format)
    steps = intervals(records, log_format)
    times = trains_meanwhile(inside, steps)
    if times > AT_ONCE:
        raise Refused(
            f"evaluations lie in the window, and training goes on meanwhile: without their time, "
            f"it would be {times:.3g} times as fast as where nothing is evaluated"
        )
    times = times_as_fast(inside, steps) if log_format.runs_ahead else 1.0
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
        raise Refused(
            f"the log's times are printed in steps of {tick_of(records, inside):g} s, too coarse "
            f"for a window of {seconds:.6g} s"
        )


def _check_summer_time(inside: Sequence[Interval]) -> None:
    """Check that a clock of local time was not put forward in the window, as in spring."""
    usual = median(step.seconds / (step.stop - step.start) for step in inside)
    for step in inside:
        expected = usual * (step.stop - step.start)
        if abs(step.seconds - expected - _HOUR) <= min(max(1.0, expected / 2), _HOUR / 20):
            raise Refused(
                f"from iteration {step.start} to {step.stop}, an hour passes more than between "
                "others: nothing says whether the run stood still, or summer time began"
            )


def _check_second_clock(inside: Sequence[Interval], log_format: Format, facts: Facts) -> None:
    """Check that a log's second clock measures the window as the first one does.

    A printed mean leaves out what a program does between two iterations.
    """
    told = [step for step in inside if step.also is not None]
    if not told and facts.get("run_start"):
        raise Refused("the log stamps the start of its run, and not all of the lines in the window")
    if not told:
        return
    if len(told) < len(inside) and not log_format.mean_durations:
        raise Refused("only some of the lines in the window tell its second clock's time")
    first, second = fsum(step.seconds for step in told), fsum(step.also or 0.0 for step in told)
    share = TOLERANCE if log_format.mean_durations else COARSEST
    if abs(first - second) <= max(share * max(first, second), BETWEEN_CLOCKS):
        return
    counted = sum(step.stop - step.start for step in told)
    batch = facts.get(log_format.step_is[0])
    unit = per_second(ANY) if batch else "iterations/s"
    one, other = (
        f"{counted * (batch or 1) / time:.6g}" if time > 0 else "no" for time in (first, second)
    )
    raise Refused(
        f"the log's two clocks disagree: {one} and {other} {unit}, for the window takes "
        f"{first:.6g} s by the one and {second:.6g} s by the other"
    )


def _check_pace(
    records: Sequence[Record], ends: tuple[int, int], seconds: float, *, least: bool
) -> None:
    """Check a window against what most of its lines say an iteration takes, which is rough.

    Args:
        records: of one epoch.
        ends: of the window.
        seconds: what the window takes.
        least: whether an iteration may take longer than the lines say.
    """
    inside = (record for record in records if ends[0] < record.iteration <= ends[1])
    paces = [record.pace for record in inside if record.pace]
    if len(paces) < FEWEST_PACES:
        return
    took, usual, share = seconds / (ends[1] - ends[0]), median(paces), OFF_PACE
    if least and len(paces) == ends[1] - ends[0]:  # of each iteration
        usual, share = fmean(paces), 1 + TOLERANCE
    if took < usual / share or (took > usual * share and not least):
        raise Refused(
            f"an iteration of the window takes {took:.4g} s by the log's time stamps, and "
            f"{usual:.4g} s by what most of its lines print"
        )


def _check_means(
    records: Sequence[Record],
    ends: tuple[int, int],
    seconds: float,
    log_format: Format,
    facts: Facts,
) -> None:
    """Check a window against the means of all iterations so far that the lines at its ends print.

    These are of the speed of one process, or of the time of an iteration.
    """
    group = next((one for one in ("mean", "mean_time") if one in log_format.line.groupindex), None)
    batch = facts.get("process_batch") if group == "mean" else 1
    if not group or not batch:
        return
    found = [log_format.line.search(one.text) for one in records if one.iteration in ends]
    means = [one[group].decode() for one in found if one and one[group]]
    if len(means) < len(ends) or not all(map(float, means)):
        return
    told = []
    for first in {1, log_format.counts_from}:  # some versions of a program count from 1
        seconds_so_far, vague = [], 0.0
        for iteration, mean in zip(ends, means, strict=True):
            each = batch / float(mean) if group == "mean" else float(mean)
            seconds_so_far.append((iteration + 1 - first) * each)
            vague += seconds_so_far[-1] * tick(mean) / float(mean) / 2
        told.append(seconds_so_far[1] - seconds_so_far[0])
        if abs(told[-1] - seconds) <= TOLERANCE * max(told[-1], seconds) + vague:
            return
    raise Refused(
        f"the window takes {seconds:.6g} s by the log's times, and {told[-1]:.6g} s by the means "
        f"of all iterations so far at {ends[0]} and {ends[1]}"
    )


def _check_span(
    records: Sequence[Record], ends: tuple[int, int], seconds: float, facts: Facts
) -> None:
    """Check that a window lies within its run, by what its log and a record beside it say."""
    tellers = facts.tellers()
    spans = [(facts.get("run_start") or 0.0, facts.get("run_stop") or inf, 0.0, LOG)]
    if (span := facts.get("run_span")) is not None:
        spans.append((*span, BETWEEN_MACHINES, tellers["run_span"]))
    for earliest, latest, slack, teller in spans:
        took = latest - earliest
        if seconds > took + slack + BETWEEN_CLOCKS:
            raise Refused(
                f"the window takes {seconds:.6g} s, the run took {took:.6g} s by {teller}"
            )
    for record in records:
        if record.stamp is None or not ends[0] <= record.iteration <= ends[1]:
            continue
        for earliest, latest, slack, teller in spans:
            outside = max(earliest - record.stamp, record.stamp - latest)
            if outside > slack:
                raise Refused(
                    f"the line of iteration {record.iteration} was written {outside:.3f} s outside "
                    f"the run, whose start and end {teller} says"
                )
