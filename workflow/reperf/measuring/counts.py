"""What is counted: the units of a throughput, and what a log counts in a window."""

from collections.abc import Mapping, Sequence

from reperf.logs.checks import Refused
from reperf.logs.facts import Facts
from reperf.logs.format import SEEN, SKIPPED, WAITED, Record
from reperf.systems.workloads import load_workloads

ANY = "samples"  # what a log counts if it does not say samples of what


SHARE, ROUNDED = 0.01, 0.005
"""How far rounded counts may be off: by which share of what a window holds, and of each count."""


def per_second(count: str) -> str:
    """The unit of a throughput that counts something."""
    return f"{count}/s"


def unit_of(workload: str | None) -> str | None:
    """The unit of a workload's throughput in samples; None if the workload is unknown.

    Examples:
        >>> unit_of("resnet50"), unit_of("bert-base"), unit_of("another")
        ('images/s', 'sentences/s', None)
    """
    known = load_workloads().get(workload) if workload else None
    return per_second(known.units[0]) if known else None


def all_counts() -> list[str]:
    """Everything that some workload counts, each once."""
    workloads = load_workloads().values()
    return list(dict.fromkeys(unit for workload in workloads for unit in workload.units))


def further_count(asked: str | None, workload: str | None, log_unit: str | None) -> str | None:
    """What a log must count itself, because it does not follow from the samples.

    Args:
        asked: what to count; None: samples, whatever they are called.
        workload: what was trained, if it is known.
        log_unit: the unit that the log's format prints, if it is always the same.

    Returns:
        The name of the count; None if samples are asked for.

    Examples:
        >>> further_count("tokens", "bert-base", None), further_count("images", "resnet50", None)
        ('tokens', None)
    """
    samples = {log_unit, unit_of(workload)} - {None}
    return None if asked is None or per_second(asked) in samples else asked


def counted_between(records: Sequence[Record], ends: tuple[int, int]) -> dict[str, float]:
    """How much each count grew from the line at a window's start to that at its end, by name."""
    known = {one.iteration: dict(one.counts) for one in records if one.iteration in ends}
    start, stop = (known.get(end, {}) for end in ends)
    return {name: stop[name] - start[name] for name in start if name in stop}


def check_counts(counted: Mapping[str, float], samples: int) -> None:
    """Refuse a log that counts other samples than its batches hold, or that skips steps."""
    if (others := counted.get(ANY, samples)) != samples:
        why = f"the log counts {others} samples in the window, its batches make {samples}"
        raise Refused("counts", why)
    if skipped := counted.get(SKIPPED):
        why = f"the log counts {skipped} {SKIPPED} in the window, as loss scaling does"
        raise Refused("skipped", why)


def check_seen(
    records: Sequence[Record], ends: tuple[int, int], samples: int, facts: Facts
) -> None:
    """Refuse lines whose count of tokens, which has few digits, contradicts their samples.

    The count may be off by SHARE and by the rounding of both ends.
    """
    known = {one.iteration: dict(one.counts).get(SEEN) for one in records if one.iteration in ends}
    start, stop = (known.get(end) for end in ends)
    length = facts.get("sample_tokens")
    if start is None or stop is None or not length:
        return
    seen, expected = stop - start, samples * length
    if abs(seen - expected) > SHARE * expected + ROUNDED * (start + stop):
        sources = facts.sources()
        batch, by = facts.need("global_batch"), sources["global_batch"]
        raise Refused(
            "counts",
            f"the lines count {seen:.3g} tokens in the window, and a global batch of {batch} by "
            f"{by} with {length} tokens a sample by {sources['sample_tokens']} makes "
            f"{expected:.3g}",
        )


def amount_of(counted: Mapping[str, float], count: str, samples: int, facts: Facts) -> float:
    """What the log counts in the window under a name, such as tokens.

    Tokens that the log does not count follow from its samples, if it says how many tokens each
    holds. Refused if the log does not count that name, or the count does not grow.
    """
    if count not in counted:
        if count == "tokens" and (tokens := facts.get("sample_tokens")):
            return samples * tokens
        others = ", ".join(name for name in counted if name not in (WAITED, SEEN)) or "nothing"
        why = f"the log does not count {count} at the window's ends; it counts {others}"
        raise Refused("method", why)
    if counted[count] <= 0:
        raise Refused("counts", f"the log's count of {count} does not grow in the window")
    return counted[count]


def growing(counted: Mapping[str, float]) -> dict[str, float]:
    """The counts of what was trained on in the window."""
    others = (SKIPPED, WAITED, SEEN)
    return {name: more for name, more in counted.items() if more > 0 and name not in others}


def waited_share(counted: Mapping[str, float], seconds: float) -> float | None:
    """The share of a window's seconds for which training waited for its data; None if unknown."""
    waited = counted.get(WAITED)
    return None if waited is None or not 0 <= waited <= seconds else waited / seconds
