"""The window rule: (samples between two printed iterations) / (time between them).

Both ends are lines of one rank. Whatever makes the number doubtful is a refusal. Tokens may be
counted instead of samples, or whatever else the log counts at both ends.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, fsum, inf, prod
from typing import NamedTuple

from reperf.logs.facts import Fact, Facts, Refused
from reperf.logs.format import SKIPPED, Format, Record
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
    evaluated: float = 0.0
    """Seconds of evaluation in it; infinity if nothing says how many."""

    @property
    def trains(self) -> bool:
        """Whether all but a trifle of its time went into training."""
        return self.evaluated <= COARSEST * self.seconds


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
    records, repeated = first_prints(run.records, log_format)
    steps = intervals(records, log_format)
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
    _check_evaluations(inside, "the window")
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
            + _in_unit(run, log_format, facts)
        )
    batch = step_samples(steps if holes else inside, log_format, facts)
    if holes:
        raise Refused(
            f"too short: {what} ends at iteration {reached}, the window at {ends[1]}"
            + _in_unit(run, log_format, facts)
        )
    _check_end(run, records[0].epoch, ends[1])
    samples = (ends[1] - ends[0]) * (batch or facts.need(log_format.step_is[0]))
    counts = _counts_at(records, ends, log_format)
    _check_samples(counts, samples)
    _check_skipped(counts)
    counted = samples if count is None else _difference(counts, ends, count)
    return {
        "first": ends[0],
        "last": ends[1],
        "samples": counted,
        "seconds": seconds,
        "throughput": _speed(counted, seconds, count or ANY),
    }


def warm_up(steps: Sequence[Interval], log_format: Format, facts: Facts, iterations: int) -> int:
    """The warm-up in what the log counts, which may be samples, epochs or several batches each.

    Args:
        steps: of one epoch.
        log_format: the log's format.
        facts: what is known about the run.
        iterations: the warm-up in batches.
    """
    batch, batches = facts.get("global_batch"), facts.get("accumulation") or 1
    try:
        step = step_samples(steps, log_format, facts)
    except Refused:
        step = None
    if not step or not batch:
        return iterations
    return ceil(iterations * batch / (batches * step))


def in_order(records: Sequence[Record]) -> bool:
    """Whether the iterations of records only go up."""
    places = [(record.epoch, record.iteration) for record in records]
    return all(before < after for before, after in pairwise(places))


def first_prints(
    records: Sequence[Record], log_format: Format
) -> tuple[list[Record], Counter[int]]:
    """The records in which the window must lie: of the first epoch, each iteration once.

    Args:
        records: of one rank, in the log's order.
        log_format: the log's format.

    Returns:
        The first record of each iteration, and how often an iteration is printed again.

    Raises:
        Refused: the iterations step back, as those of several ranks do.
    """
    slack = 0
    if log_format.repeats:
        strides = [after.iteration - before.iteration for before, after in pairwise(records)]
        slack = max(strides, default=0)
    before = records[0]
    found, again = [before], []
    for record in records[1:]:
        if (record.epoch, record.iteration) > (before.epoch, before.iteration):
            found.append(record)
            before = record
        elif record.epoch != before.epoch or record.iteration < before.iteration - slack:
            raise Refused(
                f"iteration {record.iteration} comes after {before.iteration}: "
                "the lines of several ranks are mixed without labels"
            )
        else:
            again.append(record)
    epoch = records[0].epoch
    repeated = Counter(record.iteration for record in again if record.epoch == epoch)
    return [record for record in found if record.epoch == epoch], repeated


def _check_repeats(
    repeated: Counter[int], records: Sequence[Record], ends: tuple[int, int]
) -> None:
    """Check that no iteration in the window, or at its start, is printed again."""
    for iteration in sorted(repeated):
        if ends[0] <= iteration < ends[1]:
            mixed = "the lines of several ranks are mixed without labels"
            if 2 * len(repeated) <= len(records):
                mixed = f"steps in the window were skipped, as loss scaling does, or {mixed}"
            times = repeated[iteration] + 1
            raise Refused(f"iteration {iteration} is printed {times} times: {mixed}")


def _check_evaluations(steps: Sequence[Interval], where: str) -> None:
    """Check that evaluations take no more than a trifle of the time of some steps."""
    seconds = fsum(step.seconds for step in steps)
    evaluated = fsum(step.evaluated for step in steps)
    if evaluated <= COARSEST * seconds:
        return
    first = next(step for step in steps if step.evaluated)
    much = "" if evaluated == inf else f" and take {evaluated:.6g} of its {seconds:.6g} s"
    raise Refused(
        f"evaluations lie in {where}{much}: the first between the iterations {first.start} "
        f"and {first.stop}"
    )


def intervals(records: Sequence[Record], log_format: Format) -> list[Interval]:
    """The stretches of iterations whose time the log tells: between stamps, or as printed.

    Args:
        records: of one rank and epoch, in order.
        log_format: the log's format.

    Raises:
        Refused: the log tells no times.
    """
    stamped = _stamped(records)
    if stamped:
        return [
            Interval(
                before.iteration,
                after.iteration,
                log_format.clock.between(before.time, after.time),
                after.rate,
                after.evaluated,
            )
            for before, after in pairwise(stamped)
        ]
    if any(record.duration is None for record in records):
        raise Refused(log_format.untimed)
    spans = [record.span for record in records[1:] if record.span and log_format.evenly]
    widest = min(spans, default=inf)
    return [
        Interval(
            record.iteration - record.span,
            record.iteration,
            record.duration,
            record.rate,
            record.evaluated,
        )
        for record in records
        if 0 < record.span <= widest
    ]


def _stamped(records: Sequence[Record]) -> list[Record]:
    """The records with a time stamp; each tells of the evaluations since the one before it."""
    stamped, evaluated = [], 0.0
    for record in records:
        evaluated += record.evaluated
        if record.time is not None:
            stamped.append(
                record if evaluated == record.evaluated else record._replace(evaluated=evaluated)
            )
            evaluated = 0.0
    return stamped


def step_samples(steps: Sequence[Interval], log_format: Format, facts: Facts) -> int | None:
    """The samples in one step of the iteration count, checked against the printed speeds.

    Printed speeds times their intervals give samples; divided by the steps, they give the batch of
    all ranks that the log's own program assumed.

    Returns:
        The samples, or None if nothing gives them.

    Raises:
        Refused: the two differ by more than TOLERANCE.
    """
    sizes = _step_sizes(steps, log_format, facts)
    implied = _implied_samples(steps, log_format, facts)
    if not sizes or implied is None:
        return next(iter(sizes.values()), None)
    for size in sizes.values():
        if abs(implied - size) <= TOLERANCE * size:
            return size
    if not any(step.trains for step in steps):
        _check_evaluations(steps, "every stretch of the log")
    batch, world = facts.need(log_format.step_is[0]), facts.get("world_size")
    samples = _whole(implied, facts.get("batch_size") or batch)
    unit = log_format.unit or unit_of(facts.get("workload")) or per_second(ANY)
    raise Refused(
        f"the printed speeds mean {samples} {unit.removesuffix('/s')} a step, "
        f"the global batch is {batch}"
        + (f" under a world size of {world}" if world else "")
        + _other_sizes(sizes, log_format)
    )


def _step_sizes(steps: Sequence[Interval], log_format: Format, facts: Facts) -> dict[str, int]:
    """The samples that a step may be, by what it then is."""
    sizes = {fact: facts.get(fact) for fact in log_format.step_is}
    if "sample" in sizes:  # samples are counted by batches, at least
        counted_by = min((step.stop - step.start for step in steps), default=0)
        sizes["sample"] = 1 if counted_by >= (sizes["global_batch"] or inf) else None
    if "epoch_batches" in sizes and (epoch := sizes.get("epoch_samples")) and sizes["global_batch"]:
        sizes["epoch_batches"] = ceil(epoch / sizes["global_batch"]) * sizes["global_batch"]
    return {fact: size for fact, size in sizes.items() if size is not None}


def _other_sizes(sizes: Mapping[str, int], log_format: Format) -> str:
    """What else a step is not, in a format that leaves it open."""
    if len(log_format.step_is) == 1:
        return ""
    epoch = sizes.get("epoch_samples")
    of_epoch = f"nor an epoch of {epoch} samples" if epoch else "and no source says an epoch's size"
    return f": a step of this log is neither a batch nor a sample, {of_epoch}"


def _whole(samples: float, batch: int) -> str:
    """A measured number of samples, rounded to whole batches if it is close to that."""
    count = round(samples / batch)
    near = count > 0 and abs(samples / batch - count) <= 0.01 * count
    return str(count * batch) if near else f"{samples:.6g}"


def _implied_samples(steps: Sequence[Interval], log_format: Format, facts: Facts) -> float | None:
    factors = [facts.get(fact) for fact in log_format.rate_times]
    told = [step for step in steps if step.rate and step.seconds >= 0]
    told = [step for step in told if step.trains] or told
    if None in factors or not told:
        return None
    samples = fsum(step.seconds * step.rate for step in told) * prod(factors)
    return samples / sum(step.stop - step.start for step in told)


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


def _in_unit(run: LoggedRun, log_format: Format, facts: Facts) -> str:
    """What a log's numbers count, if its format leaves that open and it is not iterations."""
    if len(log_format.step_is) == 1:
        return ""
    try:
        records, _ = first_prints(run.first_epoch, log_format)
        steps = intervals(records, log_format)
        samples = step_samples(steps, log_format, facts)
    except Refused:
        first = run.records[0]  # its own count may say so
        is_samples = log_format.counts(first.text).get(ANY) == first.iteration
        return ", in samples" if is_samples else ""
    sizes = _step_sizes(steps, log_format, facts)
    fact = next((fact for fact, size in sizes.items() if size == samples), None)
    units = {"sample": "samples", "epoch_samples": "epochs", "epoch_batches": "epochs"}
    return f", in {units[fact]}" if fact in units else ""


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


def _check_skipped(counted: _Counts) -> None:
    """Check that every step in the window counts: a skipped one took its time, too."""
    skipped = counted.stop.get(SKIPPED, 0) - counted.start.get(SKIPPED, 0)
    if SKIPPED in counted.start and skipped:
        raise Refused(f"the log counts {skipped} {SKIPPED} in the window, as loss scaling does")


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
