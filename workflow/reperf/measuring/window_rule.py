"""The window rule: (samples between two printed iterations) / (time between them).

Both ends are lines of one rank. Whatever makes the number doubtful is a refusal. Tokens may be
counted instead of samples, or whatever else the log counts at both ends.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum, prod
from typing import NamedTuple

from reperf.logs.facts import Facts, Refused
from reperf.logs.format import Format, Record
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring.units import ANY, per_second, unit_of

TOLERANCE = 0.05
"""How far the printed speed may be from batch x world / step time."""
SLOWEST, FASTEST = 1e-9, 1e15
"""The range of throughputs, in samples per second, outside which none is believed."""
COARSEST = 0.01
"""How much of the window's time the steps of the log's clock may leave uncertain."""


class Interval(NamedTuple):
    """A stretch of iterations whose time the log tells."""

    start: int
    """The iteration at whose end it starts."""
    stop: int
    seconds: float
    rate: float | None
    """The speed printed for it, in the format's own terms."""


class _Counts(NamedTuple):
    """What a log has counted at the window's two ends, by name."""

    start: Mapping[str, float]
    stop: Mapping[str, float]


def by_window(
    run: LoggedRun,
    log_format: Format,
    choices: Sequence[tuple[int, int]],
    facts: Facts,
    count: str | None = None,
) -> dict[str, float]:
    """Measure a run between the ends of a window.

    Args:
        run: what the log holds of it.
        log_format: the log's format.
        choices: pairs of ends, as the log numbers its iterations; the first pair it prints is used.
        facts: what is known about the run.
        count: what to count, by the log's own name for it; None: samples, from the batch size.

    Returns:
        first, last, samples (or what else is counted), seconds and throughput.

    Raises:
        Refused: the log does not carry the window.
    """
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
    _check_end(run, records[0].epoch, ends[1])
    seconds = fsum(step.seconds for step in inside)
    samples = (ends[1] - ends[0]) * (batch or facts.need(log_format.step_is[0]))
    _check_clock(records, inside, seconds)
    counts = _counts_at(records, ends, log_format)
    _check_samples(counts, samples)
    counted = samples if count is None else _difference(counts, ends, count)
    return {
        "first": ends[0],
        "last": ends[1],
        "samples": counted,
        "seconds": seconds,
        "throughput": _speed(counted, seconds, count or ANY),
    }


def in_order(records: Sequence[Record]) -> bool:
    """Whether the iterations of records only go up."""
    places = [(record.epoch, record.iteration) for record in records]
    return all(before < after for before, after in pairwise(places))


def _of_first_epoch(run: LoggedRun) -> list[Record]:
    """The records in which the window must lie.

    Raises:
        Refused: they are of more than one rank.
    """
    for before, after in pairwise(run.records):
        if not in_order((before, after)):
            raise Refused(
                f"iteration {after.iteration} comes after {before.iteration}: "
                "the lines of several ranks are mixed without labels"
            )
    return [record for record in run.records if record.epoch == run.records[0].epoch]


def intervals(records: Sequence[Record], log_format: Format) -> list[Interval]:
    """The stretches of iterations whose time the log tells: between stamps, or as printed.

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
    """The samples in one step of the iteration count, checked against the printed speeds.

    Printed speeds times their intervals give samples; divided by the steps, they give the batch of
    all ranks that the log's own program assumed.

    Returns:
        The samples, or None if nothing gives them.

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
    unit = log_format.unit or unit_of(facts.get("workload")) or per_second(ANY)
    raise Refused(
        f"the printed speeds mean {samples} {unit.removesuffix('/s')} a step, "
        f"the global batch is {batch}" + (f" under a world size of {world}" if world else "")
    )


def _whole(samples: float, batch: int) -> str:
    """A measured number of samples, rounded to whole batches if it is close to that."""
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


def _check_end(run: LoggedRun, epoch: int, last: int) -> None:
    """Check that the run came to its end, if the log's format says so, and after the window's."""
    if run.ends is None:
        return
    if not run.ends:
        raise Refused("the end of the run is not in the log: it is cut, or the run broke off")
    early = run.ends[0]
    if (early.epoch, early.iteration) < (epoch, last):
        raise Refused(
            f"the log says that the run ended at iteration {early.iteration}, before the window "
            f"does at {last}, and goes on"
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


def uncertainty(records: Sequence[Record], inside: Sequence[Interval]) -> float:
    """The seconds that the steps of the log's clock leave open in the time of some intervals."""
    tick = max(record.tick for record in records)
    return tick if records[0].time is not None else len(inside) * tick / 2


def _check_clock(records: Sequence[Record], inside: Sequence[Interval], seconds: float) -> None:
    """Check that the clock moves, and is fine enough for the window."""
    if seconds == 0:
        raise Refused("no time passes in the window, by the log's own clock")
    if uncertainty(records, inside) > COARSEST * seconds:
        tick = max(record.tick for record in records)
        raise Refused(
            f"the log's times are printed in steps of {tick:g} s, too coarse for {seconds:.6g} s"
        )


def _speed(counted: float, seconds: float, count: str) -> float:
    """How much is counted per second.

    Raises:
        Refused: no training is that fast, or that slow.
    """
    speed = counted / seconds
    if not SLOWEST <= speed <= FASTEST:
        raise Refused(f"{counted} {count} in {seconds:g} s are no speed that any training has")
    return speed


def _check_samples(counted: _Counts, samples: int) -> None:
    """Check that the log counts as many samples as its batches hold."""
    if ANY in counted.start and ANY in counted.stop:
        difference = counted.stop[ANY] - counted.start[ANY]
        if difference != samples:
            raise Refused(
                f"the log counts {difference} samples in the window, its batches make {samples}"
            )


def _difference(counted: _Counts, ends: tuple[int, int], count: str) -> float:
    """What the log counts in the window.

    Raises:
        Refused: it does not count that, or its count does not grow.
    """
    start, stop = counted
    if count not in start or count not in stop:
        others = ", ".join(name for name in start if name in stop) or "nothing"
        raise Refused(f"the log does not count {count} at the window's ends; it counts {others}")
    if start[count] >= stop[count]:
        raise Refused(
            f"the log counts {start[count]} {count} at iteration {ends[0]} and "
            f"{stop[count]} at iteration {ends[1]}: no more"
        )
    return stop[count] - start[count]


def _counts_at(records: Sequence[Record], ends: tuple[int, int], log_format: Format) -> _Counts:
    texts = {record.iteration: record.text for record in records if record.iteration in ends}
    return _Counts(*(log_format.counts(texts[end]) if end in texts else {} for end in ends))
