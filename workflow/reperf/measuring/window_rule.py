"""The window rule: (samples between two printed iterations) / (time between them).

Both ends are lines of one rank. Whatever makes the number doubtful is a refusal. Tokens may be
counted instead of samples, or whatever else the log counts at both ends.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, inf
from statistics import fmean, median
from typing import Any

from reperf.logs.checks import Refused
from reperf.logs.facts import LOG, Fact, Facts
from reperf.logs.format import Format, Prints, Record
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
from reperf.measuring.step_size import TOLERANCE, cut_short, step_samples
from reperf.measuring.units import ANY, per_second
from reperf.measuring.window_counts import (
    amount_of,
    check_counts,
    counted_between,
    growing,
    waited_share,
)

BETWEEN_CLOCKS = 0.05
"""Seconds that may pass between the readings of two clocks for one line, as on a busy machine."""
OFF_PACE = 1.5
"""How many times as long an iteration of a window may take as most of its lines print, or as short:
what they print is a mean of a few iterations."""
FEWEST_PACES = 3
BETWEEN_MACHINES = 1.0
"""Seconds by which the wall clock of a run record may differ from that of its log."""
SLOWEST, FASTEST = 1e-9, 1e15
"""The range of throughputs, in samples per second, outside which none is believed."""


@dataclass(frozen=True)
class _Window:
    """A window of a run, as the checks see it.

    Attributes:
        run: the run.
        log_format: its log's format.
        facts: what is known about it.
        records: those in which the window must lie.
        repeated: how often an iteration is printed again.
        ends: of the window.
        steps: the intervals inside.
        seconds: their sum.
    """

    run: LoggedRun
    log_format: Format
    facts: Facts
    records: Sequence[Record]
    repeated: Counter[int]
    ends: tuple[int, int]
    steps: Sequence[Interval]

    @property
    def seconds(self) -> float:
        return fsum(step.seconds for step in self.steps)

    @property
    def iterations(self) -> int:
        return self.ends[1] - self.ends[0]

    @property
    def holes(self) -> list[tuple[int, int]]:
        """The stretches that no interval covers."""
        edges = [self.ends[0], *(step.stop for step in self.steps)]
        starts = [*(step.start for step in self.steps), self.ends[1]]
        return [hole for hole in zip(edges, starts, strict=True) if hole[0] != hole[1]]


def by_window(
    run: LoggedRun,
    log_format: Format,
    choices: Sequence[tuple[int, int]],
    facts: Facts,
    count: str | None = None,
    *,
    lines: Sequence[Record] | None = None,
) -> dict[str, Any]:
    """Measure a run between the ends of a window.

    Args:
        run: what its log holds.
        log_format: the log's format.
        choices: pairs of ends, as the log numbers its iterations; the first pair it prints is used.
        facts: what is known about the run.
        count: what to count, by the log's own name for it; None: samples, from the batch size.
        lines: the records in which the window must lie; None: those that are needed for it.

    Returns:
        first, last, samples (or what else is counted), seconds, throughput, the evaluations that
        were left out and their seconds, the share of the seconds that training waited for its data,
        or None, and all that was counted, by name.

    Raises:
        Refused: the log does not carry the window.
    """
    records, repeated = first_prints(lines or run.records, log_format)
    steps = intervals(records, log_format, run.later[:1])
    windows = [
        _Window(run, log_format, facts, records, repeated, ends, _inside(steps, ends))
        for ends in choices
    ]
    window = next((window for window in windows if not window.holes), windows[0])
    ends, inside, seconds = window.ends, window.steps, window.seconds
    _listen(records, ends, facts)
    _check(window, _BEFORE_HOLES)
    check_evaluations(inside, "the window")
    holes = window.holes
    if not holes:
        _check(window, _OF_TIMES)
    reached, what = _reached(run, records)
    if holes and reached >= ends[1]:
        start, stop = holes[0]
        printed = _some([record.iteration for record in records])
        raise Refused(
            "hole",
            f"the time from iteration {start} to {stop} is not in the log: printed are {printed}",
        )
    batch = step_samples(steps if holes else inside, log_format, facts)
    if holes:
        raise Refused(
            "too-short",
            f"too short: {what} ends at iteration {reached}, the window at {ends[1]}",
        )
    check_end(run, records[0].epoch, ends[1])
    if (short := cut_short(steps, log_format)) and short in inside:
        raise Refused(
            "speed",
            f"the step from {short.start} to {short.stop} was not trained to its end, by the speed "
            "that is printed for it",
        )
    _check(window, (("ahead", _is_ahead),))
    exact = window.iterations * (batch or facts.need(log_format.step_is[0]))
    samples = int(exact)
    if samples != exact:
        raise Refused(
            "counts", f"the window holds {float(exact):.6g} samples, which is no whole number"
        )
    counts = counted_between(records, ends)
    check_counts(counts, samples)
    amount = samples if count is None else amount_of(counts, count, samples, facts)
    speed = amount / seconds
    if not SLOWEST <= speed <= FASTEST:
        raise Refused(
            "impossible",
            f"{amount} {count or ANY} in {seconds:g} s are no speed that any training has",
        )
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
    }


def _inside(steps: Sequence[Interval], ends: tuple[int, int]) -> list[Interval]:
    return [step for step in steps if ends[0] <= step.start and step.stop <= ends[1]]


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


def _some(iterations: Sequence[int]) -> str:
    shown = [str(iteration) for iteration in iterations]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "..", shown[-1]])


def check_end(run: LoggedRun, epoch: int, last: int) -> None:
    """Check that the run came to its end, if the log's format says so, and after the window's.

    Args:
        run: what its log holds.
        epoch: that of the window.
        last: the iteration at whose end the window stops.

    Raises:
        Refused: it did not.
    """
    if run.ends is None:
        return
    if not run.ends and run.stopped_as:
        why = f"the log says that the run stopped as {run.stopped_as}, without success"
    elif not run.ends:
        why = "the end of the run is not in the log: the log is cut, or the run broke off"
    elif (run.ends[0].epoch, run.ends[0].iteration) < (epoch, last):
        why = (
            f"the log says that the run ended at iteration {run.ends[0].iteration}, before the "
            f"window does at {last}, and goes on"
        )
    else:
        return
    raise Refused("end", why)


_Find = Callable[[_Window], str]
"""What is wrong with a window; empty if nothing is."""


def _check(window: _Window, checks: Sequence[tuple[str, _Find]]) -> None:
    """Make some checks, each with the code of its refusal."""
    for code, find in checks:
        if why := find(window):
            raise Refused(code, why)


def _restarts(window: _Window) -> str:
    for again in window.run.restarts:
        if window.ends[0] < again <= window.ends[1]:
            return (
                f"before iteration {again}, the log says again what it says at its start: the "
                "program was started anew in the window"
            )
    return ""


def _steps_back(window: _Window) -> str:
    for step in window.steps:
        if step.seconds < 0:
            return (
                f"time steps back by {-step.seconds:.6g} s between the iterations {step.start} "
                f"and {step.stop}"
            )
    return ""


def _prints_again(window: _Window) -> str:
    """An iteration in the window is printed again, or the one whose time begins it."""
    # A stamp is that of the iteration's end, a duration that of the iteration itself.
    first = window.ends[0] + (window.records[0].time is None)
    for iteration in sorted(window.repeated):
        if first <= iteration < first + window.iterations:
            mixed = "the lines of several ranks are mixed without labels"
            if 2 * len(window.repeated) <= len(window.records):
                mixed = f"steps in the window were skipped, as loss scaling does, or {mixed}"
            times = window.repeated[iteration] + 1
            return f"iteration {iteration} is printed {times} times: {mixed}"
    return ""


def _is_coarse(window: _Window) -> str:
    if not window.seconds:
        return "no time passes in the window, by the log's own clock"
    if uncertainty(window.records, window.steps) <= COARSEST * window.seconds:
        return ""
    return (
        f"the log's times are printed in steps of {tick_of(window.records, window.steps):g} s, too "
        f"coarse for a window of {window.seconds:.6g} s"
    )


def _two_clocks(window: _Window) -> str:
    """A log's second clock does not measure the window as the first one does.

    A printed mean leaves out what a program does between two iterations.
    """
    means = window.log_format.mean_durations
    both = [step for step in window.steps if step.also is not None]
    if not both and window.facts.get("run_start"):
        return "the log stamps the start of its run, and not all of the lines in the window"
    if both and len(both) < len(window.steps) and not means:
        return "some lines in the window lack the second time stamp"
    first, second = fsum(step.seconds for step in both), fsum(step.also or 0.0 for step in both)
    share = TOLERANCE if means else COARSEST
    if abs(first - second) <= max(share * max(first, second), BETWEEN_CLOCKS):
        return ""
    counted = sum(step.stop - step.start for step in both)
    batch = window.facts.get(window.log_format.step_is[0])
    unit = per_second(ANY) if batch else "iterations/s"
    one, other = (
        f"{counted * (batch or 1) / time:.6g}" if time > 0 else "no" for time in (first, second)
    )
    return (
        f"the log's two clocks disagree: {one} and {other} {unit}, for the window takes "
        f"{first:.6g} s by the one and {second:.6g} s by the other"
    )


def _off_pace(window: _Window) -> str:
    """Most of its lines say that an iteration takes another time, which is rough."""
    # Then an iteration may take longer than the lines say.
    least = Prints.BUSY_PACES in window.log_format.prints
    first, last = window.ends
    inside = (record for record in window.records if first < record.iteration <= last)
    paces = [record.pace for record in inside if record.pace]
    if len(paces) < FEWEST_PACES:
        return ""
    took, usual, share = window.seconds / window.iterations, median(paces), OFF_PACE
    if least and len(paces) == window.iterations:  # of each iteration
        usual, share = fmean(paces), 1 + TOLERANCE
    if usual / share <= took and (took <= usual * share or least):
        return ""
    return (
        f"an iteration of the window takes {took:.4g} s by the log's time stamps, and "
        f"{usual:.4g} s by what most of its lines print"
    )


def _outside_run(window: _Window) -> str:
    """The window does not lie within its run, by what its log and a record beside it say."""
    facts, seconds = window.facts, window.seconds
    spans = [(facts.get("run_start") or 0.0, facts.get("run_stop") or inf, 0.0, LOG)]
    if (span := facts.get("run_span")) is not None:
        spans.append((*span, BETWEEN_MACHINES, facts.tellers()["run_span"]))
    for earliest, latest, slack, teller in spans:
        took = latest - earliest
        if seconds > took + slack + BETWEEN_CLOCKS:
            return f"the window takes {seconds:.6g} s, the run took {took:.6g} s by {teller}"
    first, last = window.ends
    for record in window.records:
        if record.stamp is None or not first <= record.iteration <= last:
            continue
        for earliest, latest, slack, teller in spans:
            outside = max(earliest - record.stamp, record.stamp - latest)
            if outside > slack:
                return (
                    f"the line of iteration {record.iteration} was written {outside:.3f} s outside "
                    f"the run, whose start and end {teller} says"
                )
    return ""


def _is_ahead(window: _Window) -> str:
    """By the whole run, other devices evaluate meanwhile, or lines come before their work."""
    evaluates = any(step.left_out.count for step in window.steps)
    if not evaluates and Prints.RUNS_AHEAD not in window.log_format.prints:
        return ""  # what follows takes time
    records, _ = first_prints(window.run.first_epoch, window.log_format)
    whole = intervals(records, window.log_format)
    if evaluates and (times := trains_meanwhile(window.steps, whole)) > AT_ONCE:
        return (
            f"evaluations lie in the window, and training goes on meanwhile: without their time, "
            f"it would be {times:.3g} times as fast as where nothing is evaluated"
        )
    if Prints.RUNS_AHEAD not in window.log_format.prints:
        return ""
    if (times := times_as_fast(window.steps, whole)) > MOST_TIMES:
        return (
            f"the window is {times:.3g} times as fast as the run from its start on, evaluations "
            "left out: its lines seem to be printed before their work is done"
        )
    return ""


_BEFORE_HOLES: tuple[tuple[str, _Find], ...] = (
    ("restart", _restarts),
    ("clock", _steps_back),
    ("repeated", _prints_again),
)
_OF_TIMES: tuple[tuple[str, _Find], ...] = (
    ("clock", _is_coarse),
    ("two-clocks", _two_clocks),
    ("pace", _off_pace),
    ("outside-run", _outside_run),
)
"""Of windows without holes, else they would make a speed of too few seconds."""
