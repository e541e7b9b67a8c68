"""The search for the largest batch that trains, by a handful of trials.

Memory is a fixed part and so much for each sample. Two small batches therefore predict the largest
one, as soon as they differ by enough; the prediction and its successor, tried, confirm it. Where
memory is less regular than that, or nobody knows how much there is, the search goes on from there:
in steps that double, then by halves. What it returns has trained, and the next multiple has not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

SECOND = 4
"""The second batch, in multiples: far enough from the first for a slope, and still small."""
MOST_PREDICTIONS = 6
"""How many trials follow predictions before halves take over."""
GROWTH = 50
"""A prediction stands on two batches that differ by a 50th of the memory, or more."""


@dataclass(frozen=True)
class Tried:
    """What became of a batch.

    Attributes:
        trains: whether it fits.
        peak: the most memory that a device used, in bytes; None if that is not known.
    """

    trains: bool
    peak: int | None = None


def largest(
    attempt: Callable[[int], Tried], *, multiple: int, memory: int | None, most: int
) -> int | None:
    """The largest multiple that trains, if no batch trains that is larger than one that does not.

    Args:
        attempt: tries a batch size, in samples; called once for each.
        multiple: the smallest batch size, and what all others are multiples of.
        memory: the bytes that a device has; None: not known.
        most: no larger batch is tried.

    Returns:
        The batch size; None if not even the smallest trains.
    """
    most -= most % multiple
    first = attempt(multiple)
    if not first.trains:
        return None
    peaks = {multiple: first.peak}
    low, high = multiple, most + multiple  # it trains, it does not
    step, predictions = multiple, 0
    while high - low > multiple:
        batch = _predicted(peaks, multiple, memory)
        if batch is None or predictions == MOST_PREDICTIONS:
            half = _between(low, high) // multiple * multiple
            batch = half if high <= most else SECOND * low
        else:
            predictions += 1
            if not low < batch < high:  # it was wrong: away from what it said, in growing steps
                batch = low + step if batch <= low else high - step
                step *= 2
        batch = min(max(batch, low + multiple), high - multiple)
        tried = attempt(batch)
        if tried.trains:
            low, peaks[batch] = batch, tried.peak
        else:
            high = batch
    return low


def _between(low: int, high: int) -> int:
    """Half way between two batches, or by their magnitudes, if these are far apart."""
    return (low + high) // 2 if high <= SECOND * low else isqrt(low * high)


def _predicted(peaks: dict[int, int | None], multiple: int, memory: int | None) -> int | None:
    """The largest batch by the line through two that train; None if they give none.

    Args:
        peaks: batch size -> bytes, of those that train.
    """
    last = max(peaks)
    # Neighbours differ by little more than chance, and so do batches that fit into what a framework
    # takes for itself.
    first = max((batch for batch in peaks if 2 * batch <= last), default=min(peaks))
    low, high = peaks[first], peaks[last]
    if memory is None or low is None or high is None:
        return None
    growth = high - low
    if growth <= 0 or GROWTH * growth < memory:
        return None
    slope = Fraction(growth, last - first)
    more = (memory - high) // slope
    return (last + more) // multiple * multiple
