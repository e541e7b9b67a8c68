"""What a log counts at the two ends of a window."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reperf.logs.facts import Facts, Refused, Setting
from reperf.logs.format import SKIPPED, WAITED, Record
from reperf.measuring.units import ANY


class Counts(NamedTuple):
    """What a log has counted at the window's two ends, by name."""

    start: Mapping[str, float]
    stop: Mapping[str, float]


def counts_at(records: Sequence[Record], ends: tuple[int, int]) -> Counts:
    """What a log counts in the records of a window's ends."""
    found = {one.iteration: dict(one.counts) for one in records if one.iteration in ends}
    return Counts(*(found.get(end, {}) for end in ends))


def check_samples(counted: Counts, samples: int) -> None:
    """Check that the log counts as many samples as its batches hold."""
    if ANY in counted.start and ANY in counted.stop:
        difference = counted.stop[ANY] - counted.start[ANY]
        if difference != samples:
            raise Refused(
                "counts",
                f"the log counts {difference} samples in the window, its batches make {samples}",
            )


def check_tokens(counted: Counts, samples: int, facts: Facts) -> None:
    """Check that a log counts no more tokens than its samples have places for."""
    longest = facts.get(Setting("sequence_length")) or facts.get(Setting("context"))
    tokens = counted.stop.get("tokens", 0) - counted.start.get("tokens", 0)
    if "tokens" in counted.start and longest and tokens > samples * longest:
        raise Refused(
            "counts",
            f"the log counts {tokens} tokens in the window; allowed in {samples} samples of "
            f"{longest}: {samples * longest}",
        )


def check_skipped(counted: Counts) -> None:
    """Check that every step in the window counts: a skipped one took its time, too."""
    skipped = counted.stop.get(SKIPPED, 0) - counted.start.get(SKIPPED, 0)
    if SKIPPED in counted.start and skipped:
        raise Refused(
            "skipped", f"the log counts {skipped} {SKIPPED} in the window, as loss scaling does"
        )


def difference(counted: Counts, ends: tuple[int, int], count: str) -> float:
    """What the log counts in the window.

    Raises:
        Refused: it does not count that, or its count does not grow.
    """
    start, stop = counted
    known = [name for name in start if name in stop and name != WAITED]
    if count not in known:
        others = ", ".join(known) or "nothing"
        raise Refused(
            "method",
            f"the log does not count {count} at the window's ends; it counts {others}",
        )
    if start[count] >= stop[count]:
        raise Refused(
            "counts",
            f"the log counts {start[count]} {count} at iteration {ends[0]} and "
            f"{stop[count]} at iteration {ends[1]}: the count does not grow",
        )
    return stop[count] - start[count]


def in_unit_of(
    count: str, counted: Counts, ends: tuple[int, int], samples: int, facts: Facts
) -> float:
    """What was trained in the window, by the log's own count.

    Tokens that the log does not count follow from its samples, if it says how many a sample holds.

    Args:
        count: the name of the count.
        counted: what the log counts at the window's ends.
        ends: the window's ends.
        samples: those in the window.
        facts: what is known about the run.

    Raises:
        Refused: the log does not count that, or its count does not grow.
    """
    tokens = facts.get("sample_tokens")
    if count == "tokens" and count not in counted.start and tokens:
        return samples * tokens
    return difference(counted, ends, count)


def growth(counted: Counts) -> dict[str, float]:
    """What the log counts at both of the window's ends, and how much more at the second."""
    start, stop = counted
    both = (name for name in start if name in stop and name not in (SKIPPED, WAITED))
    return {name: stop[name] - start[name] for name in both if stop[name] > start[name]}


def waited_share(counted: Counts, seconds: float) -> float | None:
    """The share of a window's seconds for which training waited for its data.

    Returns:
        None if the log does not say it at both ends, or says what cannot be.
    """
    start, stop = counted.start.get(WAITED), counted.stop.get(WAITED)
    if start is None or stop is None or not 0 <= stop - start <= seconds:
        return None
    return (stop - start) / seconds
