"""What a log counts in a window, from its lines at both ends."""

from collections.abc import Mapping, Sequence

from reperf.logs.checks import Refused
from reperf.logs.facts import Facts
from reperf.logs.format import SKIPPED, WAITED, Record
from reperf.measuring.units import ANY


def counted_between(records: Sequence[Record], ends: tuple[int, int]) -> dict[str, float]:
    """How much more a log counts at the window's second end than at its first, by name.

    Returns:
        Samples, tokens, SKIPPED, WAITED, ...: only what the lines at both ends count.
    """
    known = {one.iteration: dict(one.counts) for one in records if one.iteration in ends}
    start, stop = (known.get(end, {}) for end in ends)
    return {name: stop[name] - start[name] for name in start if name in stop}


def check_counts(counted: Mapping[str, float], samples: int) -> None:
    """Check that a log counts as many samples as its batches hold, and skips no step.

    Raises:
        Refused: it does not. A skipped step took its time, too.
    """
    if (others := counted.get(ANY, samples)) != samples:
        raise Refused(
            "counts", f"the log counts {others} samples in the window, its batches make {samples}"
        )
    if skipped := counted.get(SKIPPED):
        raise Refused(
            "skipped", f"the log counts {skipped} {SKIPPED} in the window, as loss scaling does"
        )


def amount_of(counted: Mapping[str, float], count: str, samples: int, facts: Facts) -> float:
    """What the log counts in the window under a name, such as tokens.

    Tokens that it does not count follow from its samples, if it says how many each holds.

    Raises:
        Refused: it does not count that, or its count does not grow.
    """
    if count not in counted and count == "tokens" and (tokens := facts.get("sample_tokens")):
        return samples * tokens
    if count not in counted:
        others = ", ".join(name for name in counted if name != WAITED) or "nothing"
        raise Refused(
            "method", f"the log does not count {count} at the window's ends; it counts {others}"
        )
    if counted[count] <= 0:
        raise Refused("counts", f"the log's count of {count} does not grow in the window")
    return counted[count]


def growing(counted: Mapping[str, float]) -> dict[str, float]:
    """The counts of what was trained on in the window."""
    others = (SKIPPED, WAITED)
    return {name: more for name, more in counted.items() if more > 0 and name not in others}


def waited_share(counted: Mapping[str, float], seconds: float) -> float | None:
    """The share of a window's seconds for which training waited for its data.

    Returns:
        None if the log does not say it at both ends, or says what cannot be.
    """
    waited = counted.get(WAITED)
    return None if waited is None or not 0 <= waited <= seconds else waited / seconds
