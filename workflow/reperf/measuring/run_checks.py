"""The checks of a run and of its window: whatever makes the number doubtful is a refusal.

A log of ours must print what its run prints, no iteration less and none more. Its plan is what the
run record beside the log says, and the log's own `configuration` event.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import fsum, inf
from statistics import fmean, median

from reperf.logs.checks import Refused
from reperf.logs.clock import MONOTONIC
from reperf.logs.facts import LOG, Facts
from reperf.logs.format import Format, Prints, Record
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.counts import ANY, per_second
from reperf.measuring.intervals import (
    AT_ONCE,
    COARSEST,
    MOST_TIMES,
    Interval,
    first_prints,
    intervals,
    tick_of,
    times_as_fast,
    trains_meanwhile,
    uncertainty,
)
from reperf.measuring.step_size import DENIED, TOLERANCE

BETWEEN_CLOCKS = 0.05
"""Seconds that may pass between the readings of two clocks for one line, as on a busy machine."""
OFF_PACE = 1.5
"""How many times as long an iteration of a window may take as most of its lines print, or as short:
what they print is a mean of a few iterations."""
FEWEST_PACES = 3
LONG = 20.0
"""An interval may be this many times as long as the median; DENIED, if its line has a speed."""
FAR = 3.0
"""How many times as far from the usual time as any other interval one may be. Of 322 windows of
public logs, 5 hold one that is farther and changes more than a trifle of the window's time."""
HELD_BACK = 0.02
"""Lines are printed at once if an interval takes this part of the others' time, or less."""
_NOT_FINITE = re.compile(rb"(?i)loss\w*['\"]?[:= (]{1,4}[-+]?(?:nan|inf)\b")
FEWEST_STEPS = 4  # intervals of a window, of which a median is one
BETWEEN_MACHINES = 1.0
"""Seconds by which the wall clock of a run record may differ from that of its log."""


@dataclass(frozen=True)
class WindowOfRun:
    """A window of a run, as the checks see it."""

    run: LoggedRun  # the run
    log_format: Format  # its log's format
    facts: Facts  # what is known about it
    records: Sequence[Record]  # those in which the window must lie
    repeated: Counter[int]  # how often an iteration is printed again
    ends: tuple[int, int]  # of the window
    steps: Sequence[Interval]  # the intervals inside

    @property
    def seconds(self) -> float:
        """The sum of its intervals."""
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


def check_order(window: WindowOfRun) -> None:
    """Check that a window's lines follow each other, in a single start of the program."""
    for again in window.run.restarts:
        if window.ends[0] < again <= window.ends[1]:
            raise Refused(
                "restart",
                f"before iteration {again}, the log says again what it says at its start: the "
                "program was started anew in the window",
            )
    for step in window.steps:
        if step.seconds < 0:
            raise Refused(
                "clock",
                f"time steps back by {-step.seconds:.6g} s between the iterations {step.start} "
                f"and {step.stop}",
            )
    # A stamp is that of the iteration's end, a duration that of the iteration itself.
    first = window.ends[0] + (window.records[0].time is None)
    for iteration in sorted(window.repeated):
        if first <= iteration < first + window.iterations:
            mixed = "the lines of several ranks are mixed without labels"
            if 2 * len(window.repeated) <= len(window.records):
                mixed = f"steps in the window were skipped, as loss scaling does, or {mixed}"
            times = window.repeated[iteration] + 1
            raise Refused("repeated", f"iteration {iteration} is printed {times} times: {mixed}")


def check_times(window: WindowOfRun) -> tuple[str, ...]:
    """Check the times of a window without holes against all else in the log that shows them.

    Returns:
        What to know beside the number, as the warnings of a Measurement.
    """
    if not window.seconds:
        raise Refused("clock", "no time passes in the window, by the log's own clock")
    if uncertainty(window.records, window.steps) > COARSEST * window.seconds:
        raise Refused(
            "clock",
            f"the log's times are printed in steps of {tick_of(window.records, window.steps):g} s, "
            f"too coarse for a window of {window.seconds:.6g} s",
        )
    warnings = _check_second_clock(window)
    _check_pace(window)
    _check_flushed(window)
    _check_within_run(window)
    return (*warnings, *_gaps(window), *_diverged(window))


def _check_second_clock(window: WindowOfRun) -> tuple[str, ...]:
    """Check that a log's second clock measures the window as the first one does.

    A printed mean leaves out what a program does between two iterations. A wall clock may be set
    once, beside a clock that cannot jump: that is a warning.
    """
    means = window.log_format.mean_durations
    both = [step for step in window.steps if step.also is not None]
    if not both and window.facts.get("run_start"):
        why = "the log stamps the start of its run, and not all of the lines in the window"
        raise Refused("two-clocks", why)
    if both and len(both) < len(window.steps) and not means:
        raise Refused("two-clocks", "some lines in the window lack the second time stamp")
    first, second = fsum(step.seconds for step in both), fsum(step.also or 0.0 for step in both)
    share = TOLERANCE if means else COARSEST
    if abs(first - second) <= max(share * max(first, second), BETWEEN_CLOCKS):
        return ()
    if window.log_format.clock is MONOTONIC and (when := _clock_set(window.run)):
        return (f"clock-set: {when}; measured by the clock that cannot jump",)
    counted = sum(step.stop - step.start for step in both)
    batch = window.facts.get(window.log_format.step_is[0])
    unit = per_second(ANY) if batch else "iterations/s"
    speeds = " and ".join(
        f"{counted * (batch or 1) / time:.6g}" if time > 0 else "no" for time in (first, second)
    )
    raise Refused(
        "two-clocks",
        f"the log's two clocks disagree: {speeds} {unit}, for the window takes {first:.6g} s by "
        f"the one and {second:.6g} s by the other",
    )


def _clock_set(run: LoggedRun) -> str:
    """Between which lines of a run its wall clock was set, and by how much; empty if not once.

    The two clocks must agree by two lines at least before that, and after it: a single line whose
    time is wrong changes what lies between the clocks twice, or at an end.
    """
    lines = [record for record in run.first_epoch if record.stamp is not None]
    apart = [(line.stamp or 0.0) - (line.time or 0.0) for line in lines]
    jumps = [
        place
        for place, (before, after) in enumerate(pairwise(apart), 1)
        if abs(after - before) > BETWEEN_CLOCKS
    ]
    if len(jumps) != 1 or not 2 <= jumps[0] <= len(lines) - 2:
        return ""
    [place] = jumps
    steady = (max(part) - min(part) <= BETWEEN_CLOCKS for part in (apart[:place], apart[place:]))
    if not all(steady):
        return ""
    start, stop = lines[place - 1].iteration, lines[place].iteration
    by = apart[place] - apart[place - 1]
    return f"the wall clock was set by {by:+.3f} s between the iterations {start} and {stop}"


def _check_pace(window: WindowOfRun) -> None:
    """Check that an iteration takes about the time that most lines of the window print."""
    # Of the work alone, without waiting for input: an iteration may take longer.
    least = Prints.BUSY_PACES in window.log_format.prints
    first, last = window.ends
    inside = (record for record in window.records if first < record.iteration <= last)
    paces = [record.pace for record in inside if record.pace]
    if len(paces) < FEWEST_PACES:
        return
    took, usual, share = window.seconds / window.iterations, median(paces), OFF_PACE
    if least and len(paces) == window.iterations:  # of each iteration
        usual, share = fmean(paces), 1 + TOLERANCE
    if took < usual / share or (took > usual * share and not least):
        raise Refused(
            "pace",
            f"an iteration of the window takes {took:.4g} s by the log's time stamps, and "
            f"{usual:.4g} s by what most of its lines print",
        )


def _check_flushed(window: WindowOfRun) -> None:
    """Check that lines were stamped when they were printed, and not when a buffer was written.

    Where another program stamps what it reads, many lines may have one time: then nobody knows when
    the window began, and when it ended. One interval counts as a pause, whatever it takes.
    """
    steps = window.steps
    if window.records[0].time is None or len(steps) < FEWEST_STEPS:
        return
    longest = max(steps, key=lambda step: step.seconds)
    usual = (window.seconds - longest.seconds) / window.iterations
    if longest.seconds > (1 - HELD_BACK) * window.seconds:
        raise Refused(
            "clock",
            f"{longest.seconds:.4g} of the window's {window.seconds:.4g} s lie between the "
            f"iterations {longest.start} and {longest.stop}: lines were stamped when a buffer was "
            "written, the clock was set, or training stood still",
        )

    def at_once(step: Interval) -> bool:
        return step.seconds <= HELD_BACK * usual * (step.stop - step.start)

    unknown = max(2 * tick_of(window.records, steps), TOLERANCE * window.seconds)
    for is_held_back, group in groupby(steps, at_once):
        part = list(group)
        first, last = part[0].start, part[-1].stop
        took = usual * (last - first)
        if is_held_back and took > unknown:
            raise Refused(
                "clock",
                f"the lines of the iterations {first} to {last} have one time stamp, but so many "
                f"iterations take {took:.4g} s: the lines were stamped when a buffer was written; "
                "allowed: lines that are written as they are printed, as python -u does",
            )


def _diverged(window: WindowOfRun) -> Iterator[str]:
    """The warning where the loss is not a finite number at the window's end: nothing is learned."""
    first, last = window.ends
    lines = [line for line in window.records if first < line.iteration <= last and line.text]
    lost = [line.iteration for line in lines if _NOT_FINITE.search(line.text)]
    # With loss scaling, a single line may have one.
    if len(lost) > 1 and lost[-2:] == [line.iteration for line in lines[-2:]]:
        yield (
            f"not-finite: the loss is not a finite number in {len(lost)} of the window's "
            f"{len(lines)} lines, from iteration {lost[0]} on: the model has diverged, and such "
            "training may be faster or slower than usual"
        )


def _gaps(window: WindowOfRun) -> Iterator[str]:
    """Where one interval of a window takes far more or less time than the others: it may be wrong.

    A clock that was set does this, a checkpoint, or a machine that stood still; a log with one
    clock cannot say which. Where lines print speeds, one such interval need not be the only one, if
    its line's speed cannot be its own.
    """
    steps = [step for step in window.steps if step.seconds > 0]
    if len(steps) < FEWEST_STEPS:
        return
    paces = [step.seconds / (step.stop - step.start) for step in steps]
    usual = median(paces)
    added = [step.seconds - usual * (step.stop - step.start) for step in steps]
    *_, second, most = sorted(added, key=abs)
    at = added.index(most)
    limit, speed = LONG, ""
    rates = [step.rate * pace for step, pace in zip(steps, paces, strict=True) if step.rate]
    if len(rates) == len(steps) and (fits := median(rates)):
        if rates[at] > DENIED * fits:
            limit = DENIED
        if abs(rates[at] - fits) > TOLERANCE * fits:
            speed = f", though its line prints a speed of {steps[at].rate:g}"
    is_far = paces[at] > limit * usual or abs(most) > FAR * abs(second)
    if is_far and abs(most) > COARSEST * window.seconds:
        step, share = steps[at], abs(most) / window.seconds
        yield (
            f"gap {share:.1%}: the iterations {step.start} to {step.stop} take "
            f"{step.seconds:.4g} s, {paces[at] / usual:.3g} times the usual{speed}: the clock was "
            "set, or training stood still; as long as the others, they would make the window "
            f"{share:.1%} {'shorter' if most > 0 else 'longer'}"
        )


def _check_within_run(window: WindowOfRun) -> None:
    """Check that a window lies within its run, by what its log and a record beside it say."""
    facts, seconds = window.facts, window.seconds
    spans = [(facts.get("run_start") or 0.0, facts.get("run_stop") or inf, 0.0, LOG)]
    if (span := facts.get("run_span")) is not None:
        spans.append((*span, BETWEEN_MACHINES, facts.sources()["run_span"]))
    first, last = window.ends
    stamped = [
        (record.iteration, record.stamp)
        for record in window.records
        if record.stamp is not None and first <= record.iteration <= last
    ]
    for earliest, latest, slack, source in spans:
        took = latest - earliest
        if seconds > took + slack + BETWEEN_CLOCKS:
            why = f"the window takes {seconds:.6g} s, the run took {took:.6g} s by {source}"
            raise Refused("outside-run", why)
        for iteration, stamp in stamped:
            outside = max(earliest - stamp, stamp - latest)
            if outside > slack:
                raise Refused(
                    "outside-run",
                    f"the line of iteration {iteration} was written {outside:.3f} s outside the "
                    f"run, whose start and end {source} says",
                )


def check_not_ahead(window: WindowOfRun) -> None:
    """Check by the whole run that it hides no work: no line is printed before its work is done."""
    evaluates = any(step.left_out.count for step in window.steps)
    runs_ahead = Prints.RUNS_AHEAD in window.log_format.prints
    if not evaluates and not runs_ahead:
        return  # what follows takes time
    records, _ = first_prints(window.run.first_epoch, window.log_format)
    whole = intervals(records, window.log_format)
    if evaluates and (times := trains_meanwhile(window.steps, whole)) > AT_ONCE:
        raise Refused(
            "ahead",
            f"evaluations lie in the window, and training goes on meanwhile: without their time, "
            f"it would be {times:.3g} times as fast as where nothing is evaluated",
        )
    if runs_ahead and (times := times_as_fast(window.steps, whole)) > MOST_TIMES:
        raise Refused(
            "ahead",
            f"the window is {times:.3g} times as fast as the run from its start on, evaluations "
            "left out: its lines seem to be printed before their work is done",
        )


def check_end(run: LoggedRun, epoch: int, last: int) -> None:
    """Check that the run ended, if the log's format says so, and not before the window's end."""
    if run.ends is None:
        return
    if not run.ends:
        why = "the end of the run is not in the log: the log is cut, or the run broke off"
        if run.stopped_as:
            why = f"the log says that the run stopped as {run.stopped_as}, without success"
        raise Refused("end", why)
    end = run.ends[0]
    if (end.epoch, end.iteration) < (epoch, last):
        raise Refused(
            "end",
            f"the log says that the run ended at iteration {end.iteration}, before the window does "
            f"at {last}, and goes on",
        )


def check_complete(run: LoggedRun, facts: Facts) -> None:
    """Check the lines of a run against its labels and its plan, as far as these are known.

    After the window, lines may be missing where they were not read.
    """
    if run.unlabelled is not None:
        raise Refused(
            "mixed-ranks",
            f"the line of iteration {run.unlabelled.iteration} carries no rank's label, and lines "
            "before it do: nothing says which rank wrote it",
        )
    if why := _contradicts_itself(run, facts):
        raise Refused("plan", why)
    iterations, every = facts.get("iterations"), facts.get("print_every")
    if iterations and every and (why := _not_as_planned(run, int(iterations), int(every), facts)):
        by = facts.sources()["print_every"]
        more = " and further ones" if facts.get("together") else ""
        why = f"{why}; allowed by {by}: each {every} of {iterations} iterations{more}, once"
        raise Refused("plan", why)


def _contradicts_itself(run: LoggedRun, facts: Facts) -> str:
    """What a log says of itself that cannot be; empty if nothing."""
    if facts.get("unconfigured"):
        return "the log names its framework, and not its configuration: a line of it is lost"
    lines = run.first_epoch
    if fault := next((record.fault for record in lines if record.fault), ""):
        return fault
    for before, after in pairwise(lines):
        if before.batch is None or after.batch is None:
            continue
        counted = after.iteration - before.iteration
        if counted > 0 and after.batch - before.batch != counted:
            return (
                f"iteration {before.iteration} is batch {before.batch} and iteration "
                f"{after.iteration} batch {after.batch} by their epochs: the counts disagree"
            )
    if again := run.begun_again:
        return (
            f"the log says that a run starts before iteration {again.iteration}; allowed: once, "
            f"before iteration {lines[0].iteration}"
        )
    return ""


def _not_as_planned(run: LoggedRun, iterations: int, every: int, facts: Facts) -> str:
    """In what the lines of a run are not those of its plan; empty if they are."""
    last = iterations // every * every
    trains_on = facts.get("together")  # until the last rank has come as far
    lines, before = run.first_epoch, 0
    for record in (*lines, run.newest):
        if record and (
            record.iteration % every
            or record.iteration < every
            or (last < record.iteration and not trains_on)
        ):
            return f"iteration {record.iteration} is printed"
    for place, record in enumerate(lines):
        iteration, due = record.iteration, before + every
        if record.evaluations:
            return f"the log shows an evaluation before iteration {iteration}"
        if iteration < due:
            return f"iteration {iteration} is printed after {before}"
        unread = record.evaluated == inf and place >= len(run.records)
        if iteration > due and not unread:
            return f"iteration {due} is not printed"
        before = iteration
    ended = run.ends[0].iteration if run.ends else last
    if last and (ended < last or (ended > last and not trains_on)):
        return f"the log says that the run ended at iteration {ended}"
    return ""
