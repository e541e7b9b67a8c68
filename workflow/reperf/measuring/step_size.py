"""How many samples one step of a log's own count is.

It may be a batch of all ranks, a sample or an epoch, where the log's format leaves that open; the
printed speeds say which.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from math import ceil, fsum, inf, isclose, prod
from statistics import median
from typing import Any

from reperf.logs.checks import Refused
from reperf.logs.facts import Facts
from reperf.logs.format import Format
from reperf.measuring.counts import ANY, per_second, unit_of
from reperf.measuring.intervals import COARSEST, Interval, check_evaluations

TOLERANCE = 0.05  # how far the printed speed may be from batch x world / step time
NEARER = 3.0
"""How many times as near as any other size the one must be that the printed speeds mean."""
DENIED = 2.0  # an interval may be this many times as long as the speed in its own line says
Size = int | Fraction  # of a step, in samples
_SAME = {"rel_tol": COARSEST}
"""How near two sizes are between which it does not matter which is meant."""


def step_samples(steps: Sequence[Interval], log_format: Format, facts: Facts) -> Size | None:
    """The samples in one step of the iteration count, checked against the printed speeds.

    Printed speeds times their intervals give samples; divided by the steps, they give the batch of
    all ranks that the log's own program assumed.

    Returns:
        The samples, or None if nothing gives them.

    Raises:
        Refused: the two differ by more than TOLERANCE, or several sizes are about as near.
    """
    sizes = _step_sizes(steps, log_format, facts)
    implied = _implied_samples(steps, log_format, facts)
    if not sizes or implied is None:
        return _undisputed(sizes, log_format)
    world = facts.get("world_size")
    fitting = _fitting(implied, sizes, world)
    if not fitting and any(step.left_out.seconds for step in steps):
        # Some programs reckon their speed with the time of their evaluations.
        whole = [step._replace(seconds=step.seconds + step.left_out.seconds) for step in steps]
        fitting = _fitting(_implied_samples(whole, log_format, facts) or implied, sizes, world)
    if fitting:
        nearest, meant = fitting[0]
        near = (size for off, size in fitting if off < NEARER * nearest)
        if rival := next((size for size in near if not isclose(size, meant, **_SAME)), None):
            raise Refused(
                "open-size",
                f"the printed speeds mean {implied:.6g} samples a step, and nothing says which "
                f"size it has: {meant} or {rival}",
            )
        facts.batch_fits |= not {"global_batch", "batch_size"} & {*log_format.rate_times}
        return meant
    if not any(step.trains for step in steps):
        check_evaluations(steps, "every stretch of the log")
    batch = facts.need(log_format.step_is[0])
    samples = _whole(implied, facts.get("batch_size") or batch)
    unit = log_format.unit or unit_of(facts.get("workload")) or per_second(ANY)
    raise Refused(
        "speed",
        f"the printed speeds mean {samples} {unit.removesuffix('/s')} a step, "
        f"the global batch is {batch}"
        + (f" under a world size of {world}" if world else "")
        + _other_sizes(sizes, log_format)
        + ("" if world else _of_one_device(implied, sizes.get("epoch_trained"))),
    )


def _fitting(
    implied: float, sizes: Mapping[str, Size], world: int | None
) -> list[tuple[float, Size]]:
    """The sizes of a step that fit what the printed speeds mean, and by how much they are off."""
    sized = [(implied, size) for size in sizes.values()]
    trained = sizes.get("epoch_trained")
    if trained and world:  # the speeds may be those of one device
        sized.append((implied * world, trained))
    by_distance = sorted({(abs(speed / size - 1), size) for speed, size in sized})
    return [(float(off), size) for off, size in by_distance if off <= TOLERANCE]


def _of_one_device(implied: float, trained: Size | None) -> str:
    """How many devices there may be, if the printed speeds seem to be those of one."""
    devices = round(trained / implied) if trained and implied > 0 else 0
    if devices < 2 or abs(implied * devices / (trained or 1) - 1) > TOLERANCE:
        return ""
    return f"; if the speeds are those of one of {devices} devices, --topology says so"


def cut_short(steps: Sequence[Interval], log_format: Format) -> Interval | None:
    """The last interval, if its step was not trained to its end, by the time and speed of others.

    An evaluation that runs beside training may end it within an epoch.
    """
    timed = [step for step in steps if step.rate and step.seconds >= 0]
    if len(log_format.step_is) == 1 or len(timed) < 2:
        return None
    *others, last = ((_trained(step), step.seconds / (step.stop - step.start)) for step in timed)
    usual = (median(amounts) for amounts in zip(*others, strict=True))
    is_short = all(
        amount < (1 - TOLERANCE) * median_amount
        for amount, median_amount in zip(last, usual, strict=True)
    )
    return timed[-1] if is_short else None


def denied(steps: Sequence[Interval]) -> list[Interval]:
    """The intervals in which training stood still for half of the time or more, by their speeds."""
    timed = [step for step in steps if step.rate]
    usual = median(map(_trained, timed)) if timed else 0.0
    return [step for step in timed if _trained(step) > DENIED * usual]


def _trained(step: Interval) -> float:
    """What an interval trained for each step, by its speed."""
    return step.seconds * (step.rate or 0.0) / (step.stop - step.start)


def _undisputed(sizes: Mapping[str, Size], log_format: Format) -> Size | None:
    """The first of the sizes that a step may be, where no speed is printed."""
    if not sizes:
        return None
    first, *others = sizes.values()
    if log_format.step_is[0] in _EPOCHS and not all(
        isclose(first, other, **_SAME) for other in others
    ):
        raise Refused(
            "open-size",
            "the log does not say how many samples it trains in an epoch: "
            + " or ".join(map(str, sizes.values())),
        )
    return first


def warm_up(steps: Sequence[Interval], log_format: Format, facts: Facts, iterations: int) -> int:
    """The warm-up of so many batches, in what the log counts: samples, epochs, several batches."""
    batch, batches = facts.get("global_batch"), facts.get("accumulation") or 1
    paused = denied(steps)
    step = min(_step_sizes(steps, log_format, facts).values(), default=None)
    for part in (steps, [step for step in steps if step not in paused]):
        with suppress(Refused):  # else the least size, so that the warm-up is long enough
            step = step_samples(part, log_format, facts)
            break
    if not step or not batch:
        return iterations
    return ceil(iterations * batch / (batches * step))


def _step_sizes(steps: Sequence[Interval], log_format: Format, facts: Facts) -> dict[str, Size]:
    """The samples that a step may be, by what it then is."""
    sizes: dict[str, Any] = {fact: facts.get(fact) for fact in log_format.step_is}
    if "sample" in sizes:  # samples are counted by batches, at least
        counted_by = min((step.stop - step.start for step in steps), default=0)
        sizes["sample"] = 1 if counted_by >= (sizes["global_batch"] or inf) else None
    if "token" in sizes:
        tokens = facts.get("sample_tokens")
        sizes["token"] = Fraction(1, tokens) if tokens else None
    batch = facts.get("global_batch")
    if "epoch_batches" in sizes and (epoch := sizes.get("epoch_samples")) and batch:
        sizes["epoch_batches"] = ceil(epoch / batch) * batch
        sizes["whole batches"] = epoch // batch * batch or None
    if sizes.get("epoch_trained"):
        sizes |= dict.fromkeys((*_EPOCHS[1:], "whole batches"))
    return {fact: size for fact, size in sizes.items() if size is not None}


_EPOCHS = ("epoch_trained", "epoch_samples", "epoch_batches")
"""What an epoch may be: the first, if the log says it, rules out the others."""


def _other_sizes(sizes: Mapping[str, Size], log_format: Format) -> str:
    """What else a step is not, in a format that leaves it open."""
    if len(log_format.step_is) == 1:
        return ""
    epoch = sizes.get("epoch_trained") or sizes.get("epoch_samples")
    of_epoch = f"nor an epoch of {epoch} samples" if epoch else "and no source says an epoch's size"
    return f": a step of this log is neither a batch nor a sample, {of_epoch}"


def _whole(samples: float, batch: int) -> str:
    """A measured number of samples, rounded to whole batches if it is close to that."""
    count = round(samples / batch)
    near = count > 0 and abs(samples / batch - count) <= 0.01 * count
    return str(count * batch) if near else f"{samples:.6g}"


def _implied_samples(steps: Sequence[Interval], log_format: Format, facts: Facts) -> float | None:
    factors = [facts.get(fact) for fact in log_format.rate_times]
    timed = [step for step in steps if step.rate and step.seconds >= 0]
    short = cut_short(timed, log_format)
    timed = [step for step in timed if step.trains and step is not short] or timed
    if None in factors or not timed:
        return None
    samples = fsum(step.seconds * rate for step, rate in zip(timed, _rates(timed), strict=True))
    return samples * prod(factors) / sum(step.stop - step.start for step in timed)


def _rates(steps: Sequence[Interval]) -> list[float]:
    """The printed speeds; the median in the place of those that do not fit their own interval.

    Some programs print spikes among them. The time of such an interval counts all the same: a speed
    that is as wrong cannot make it up.
    """
    trained = list(map(_trained, steps))
    usual, typical = median(trained), median(step.rate or 0.0 for step in steps)
    return [
        (step.rate or 0.0) if abs(amount - usual) <= TOLERANCE * usual else typical
        for step, amount in zip(steps, trained, strict=True)
    ]
