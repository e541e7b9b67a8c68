"""From a log to a throughput: one rule for every system, or a refusal that says why.

The rule: (samples between two printed iterations) / (time between them), both ends from one rank,
after the warm-up. Where the log does not carry that, there is no number. The method that was
published with a format can be asked for by name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum, inf, prod
from typing import IO, Literal, NamedTuple

from reperf.config import Window
from reperf.facts import Fact, Facts, Refused
from reperf.logs import recognise
from reperf.logs.format import Format, Record
from reperf.logs.runs import LoggedRun, training_runs, whole_log
from reperf.logs.scan import blocks
from reperf.systems import WORKLOADS

TOLERANCE = 0.05
"""How far the printed speed may be from batch x world / step time."""
COARSEST = 0.01
"""How much of the window's time the steps of the log's clock may leave open."""

Sources = Sequence[tuple[str, Iterable[Fact]]]
"""Who else knows about a log's runs, and what."""


@dataclass(frozen=True)
class Method:
    """How to measure.

    Attributes:
        name: the window rule, or what the format's published extractor does.
        window: of the window rule.
        ends: the iterations, as the log prints them, between which to measure instead.
    """

    name: Literal["window", "published"] = "window"
    window: Window = field(default_factory=Window)
    ends: tuple[int, int] | None = None

    def ends_in(self, log_format: Format) -> list[tuple[int, int]]:
        """The window's ends as a log prints them, the ones to be preferred first.

        A log that counts from 0 and prints 19, 39, .. has trained on as many batches there as
        another at 20, 40, ..
        """
        ends = self.ends or (self.window.first, self.window.last)
        if self.ends or log_format.counts_from == 1:
            return [ends]
        return [ends, (ends[0] - 1, ends[1] - 1)]


@dataclass(frozen=True)
class Measurement:
    """What one training run's log gives: a throughput, or the reason why there is none."""

    log: str
    format: str | None
    status: Literal["ok", "refused"]
    reason: str = ""
    throughput: float | None = None
    unit: str | None = None
    first: int | None = None
    last: int | None = None
    samples: int | float | None = None
    seconds: float | None = None
    method: str = "window"
    global_batch: int | None = None
    world_size: int | None = None


class Interval(NamedTuple):
    """A stretch of iterations whose time the log tells."""

    start: int
    """Iteration whose end starts it."""
    stop: int
    seconds: float
    rate: float | None
    """The speed printed for it, in the format's own terms."""


def measure_log(
    name: str,
    stream: IO[bytes],
    method: Method,
    log_format: Format | None = None,
    sources: Sources = (),
) -> Iterator[tuple[Measurement, Facts]]:
    """Measure every training run that a log holds.

    Args:
        name: of the log, for the results.
        stream: the log's bytes; read once, in pieces.
        method: how to measure.
        log_format: the log's format; left out, it is found from the content.
        sources: what others know about the runs; the log itself is asked first.

    Yields:
        What each run gives, and what is known about it.
    """
    pieces: Iterable[bytes] = blocks(stream)
    try:
        if log_format is None:
            log_format, pieces = recognise(iter(pieces))
    except Refused as refusal:
        yield Measurement(name, None, "refused", str(refusal), method=method.name), Facts()
        return
    found = False
    for run in _runs(pieces, log_format, method):
        found = True
        yield _measure_run(name, run, log_format, method, sources)
    if not found:
        reason = f"no iteration as {log_format.name} prints it is in the log"
        yield Measurement(name, log_format.name, "refused", reason, method=method.name), Facts()


def _runs(pieces: Iterable[bytes], log_format: Format, method: Method) -> Iterable[LoggedRun]:
    if method.name == "window":
        return training_runs(pieces, log_format, method.ends_in(log_format)[0][1])
    run = whole_log(pieces, log_format)
    return [run] if run else []


def _measure_run(
    name: str, run: LoggedRun, log_format: Format, method: Method, sources: Sources
) -> tuple[Measurement, Facts]:
    facts = Facts()
    found = {"method": method.name, "unit": log_format.unit}
    if method.name == "window":
        found["first"], found["last"] = method.ends_in(log_format)[0]
    status, reason = "ok", ""
    try:
        if run.overflow:
            raise Refused("it prints more lines up to the window's end than any run does")
        for source, known in (("the log", run.facts), *sources):
            facts.add(source, known)
        found["unit"] = log_format.unit or unit_of(facts.get("workload"))
        if method.name == "published":
            found |= _published(run, log_format, facts)
        else:
            found |= _by_window(run, log_format, method.ends_in(log_format), facts)
    except Refused as refusal:
        status, reason = "refused", str(refusal)
    found |= {fact: facts.get(fact) for fact in ("global_batch", "world_size")}
    return Measurement(name, log_format.name, status, reason, **found), facts


def unit_of(workload: object) -> str | None:
    """The unit of a workload's throughput, such as "images/s"."""
    return f"{WORKLOADS[workload]['unit']}/s" if workload in WORKLOADS else None


def _published(run: LoggedRun, log_format: Format, facts: Facts) -> dict:
    if log_format.published is None:
        raise Refused(f"no extractor was published for {log_format.name}")
    estimate = log_format.published(run.records, facts)
    if not 0 < estimate.throughput < inf:
        raise Refused(f"the published method gives {estimate.throughput:g}")
    rank = min(record.rank for record in run.records)
    lines = [record for record in run.records if record.rank == rank]
    if _in_order(lines) and lines[0].time is not None:
        step_samples(intervals(lines, log_format), log_format, facts)
    found = estimate._asdict()
    return found if estimate.unit else {key: found[key] for key in found if key != "unit"}


def _by_window(
    run: LoggedRun, log_format: Format, choices: Sequence[tuple[int, int]], facts: Facts
) -> dict:
    records = _of_first_epoch(run)
    steps = intervals(records, log_format)
    ends = next((ends for ends in choices if not _holes(_inside(steps, ends), ends)), choices[0])
    inside = _inside(steps, ends)
    for step in inside:
        if step.seconds < 0:
            raise Refused(
                f"time steps back by {-step.seconds:.6g} s between the iterations {step.start} "
                f"and {step.stop}"
            )
    batch = step_samples(inside or steps, log_format, facts)
    _check_reached(run, records, ends[1])
    for hole in _holes(inside, ends):
        raise Refused(
            f"the time from iteration {hole[0]} to {hole[1]} is not in the log: printed are "
            + _some([record.iteration for record in records])
        )
    if run.ended is False:
        raise Refused("the end of the run is not in the log: it is cut, or the run broke off")
    seconds = fsum(step.seconds for step in inside)
    samples = (ends[1] - ends[0]) * (batch or facts.need(log_format.step_is[0]))
    _check_clock(records, inside, seconds)
    _check_samples(records, ends, samples)
    return {
        "first": ends[0],
        "last": ends[1],
        "samples": samples,
        "seconds": seconds,
        "throughput": samples / seconds,
    }


def _in_order(records: Sequence[Record]) -> bool:
    places = [(record.epoch, record.iteration) for record in records]
    return all(before < after for before, after in pairwise(places))


def _of_first_epoch(run: LoggedRun) -> list[Record]:
    """The records in which the window must lie.

    Raises:
        Refused: they are not those of one rank.
    """
    for before, after in pairwise(run.records):
        if not _in_order((before, after)):
            raise Refused(
                f"iteration {after.iteration} comes after {before.iteration}: "
                "the lines of several ranks are mixed without labels"
            )
    return [record for record in run.records if record.epoch == run.records[0].epoch]


def intervals(records: Sequence[Record], log_format: Format) -> list[Interval]:
    """The stretches of iterations whose time the log tells: between stamps, or as it prints.

    Args:
        records: of one rank and epoch, in order.
        log_format: the log's format.

    Raises:
        Refused: the log tells no times.
    """
    stamped = [record for record in records if record.time is not None]
    if stamped:
        return [
            Interval(
                before.iteration,
                after.iteration,
                log_format.clock.between(before.time, after.time),
                after.rate,
            )
            for before, after in pairwise(stamped)
        ]
    if any(record.duration is None for record in records):
        raise Refused("the log prints neither time stamps nor durations")
    return [
        Interval(record.iteration - record.span, record.iteration, record.duration, record.rate)
        for record in records
    ]


def step_samples(steps: Sequence[Interval], log_format: Format, facts: Facts) -> int | None:
    """The samples of one step of the iteration count, held against the printed speeds.

    The printed speeds, each over its interval, count samples; divided by the steps they give the
    batch of all ranks in which the log's own program believed.

    Returns:
        The samples, or None if nothing says them.

    Raises:
        Refused: the two differ by more than TOLERANCE.
    """
    known = [1 if fact == "sample" else facts.get(fact) for fact in log_format.step_is]
    sizes = [size for size in known if size is not None]
    implied = _implied_samples(steps, log_format, facts)
    if not sizes or implied is None:
        return sizes[0] if sizes else None
    for size in sizes:
        if abs(implied - size) <= TOLERANCE * size:
            return size
    batch, world = facts.need(log_format.step_is[0]), facts.get("world_size")
    samples = _whole(implied, facts.get("batch_size") or batch)
    unit = (log_format.unit or unit_of(facts.get("workload")) or "samples/s").removesuffix("/s")
    raise Refused(
        f"the printed speeds mean {samples} {unit} a step, the global batch is {batch}"
        + (f" under a world size of {world}" if world else "")
    )


def _whole(samples: float, batch: int) -> str:
    """A number of samples that was measured, as that of whole batches if it is near to one."""
    count = round(samples / batch)
    near = count > 0 and abs(samples / batch - count) <= 0.01 * count
    return str(count * batch) if near else f"{samples:.6g}"


def _implied_samples(steps: Sequence[Interval], log_format: Format, facts: Facts) -> float | None:
    factors = [facts.get(fact) for fact in log_format.rate_times]
    told = [step for step in steps if step.rate and step.seconds >= 0]
    if None in factors or not told:
        return None
    samples = fsum(step.seconds * step.rate for step in told) * prod(factors)
    return samples / sum(step.stop - step.start for step in told)


def _check_reached(run: LoggedRun, records: Sequence[Record], last: int) -> None:
    epoch = records[0].epoch
    if run.newest.epoch != epoch:
        reached, what = records[-1].iteration, f"epoch {epoch}"
    else:
        reached, what = run.newest.iteration, "it"
    if reached < last:
        raise Refused(f"too short: {what} ends at iteration {reached}, the window at {last}")


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
    """Look whether the clock goes on, and is fine enough for the window."""
    if seconds == 0:
        raise Refused("no time passes in the window, by the log's own clock")
    tick = max(record.tick for record in records)
    left_open = tick if records[0].time is not None else len(inside) * tick / 2
    if left_open > COARSEST * seconds:
        raise Refused(
            f"the log's times are printed in steps of {tick:g} s, too coarse for {seconds:.6g} s"
        )


def _check_samples(records: Sequence[Record], ends: tuple[int, int], samples: int) -> None:
    """Look whether the log counts the samples that its batches make."""
    counted = {record.iteration: record.samples for record in records}
    start, stop = counted.get(ends[0]), counted.get(ends[1])
    if start is not None and stop is not None and stop - start != samples:
        raise Refused(
            f"the log counts {stop - start} samples in the window, its batches make {samples}"
        )
