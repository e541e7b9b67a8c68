"""What throughput is counted in."""

from reperf.systems import load_workloads

ANY = "samples"
"""What logs count that do not say samples of what."""


def per_second(count: str) -> str:
    """The unit of a throughput that counts this, such as "images/s"."""
    return f"{count}/s"


def unit_of(workload: object) -> str | None:
    """The unit of the samples that a workload trains on a second; None if it is not known."""
    known = load_workloads().get(workload)
    return per_second(known.units[0]) if known else None


def counts() -> list[str]:
    """What the workloads count, each once."""
    return list(dict.fromkeys(unit for one in load_workloads().values() for unit in one.units))


def further_count(asked: str | None, workload: object, log_unit: str | None) -> str | None:
    """What a log must count itself, because its samples alone do not give it.

    Args:
        asked: what is to be counted; None: samples, whatever they are called.
        workload: what was trained, if it is known.
        log_unit: the unit that the log's format prints, if it is always the same.

    Returns:
        The name of the count; None where it is the samples that are asked for.
    """
    samples = {log_unit, unit_of(workload)} - {None}
    return None if asked is None or per_second(asked) in samples else asked
