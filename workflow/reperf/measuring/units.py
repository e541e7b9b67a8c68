"""The units of throughput."""

from reperf.systems import load_workloads

ANY = "samples"
"""What a log counts if it does not say samples of what."""


def per_second(count: str) -> str:
    """The unit of a throughput that counts `count`, such as "images/s"."""
    return f"{count}/s"


def unit_of(workload: str | None) -> str | None:
    """The unit of a workload's throughput in samples; None if the workload is unknown."""
    known = load_workloads().get(workload) if workload else None
    return per_second(known.units[0]) if known else None


def counts() -> list[str]:
    """Everything that some workload counts, each once."""
    return list(dict.fromkeys(unit for one in load_workloads().values() for unit in one.units))


def further_count(asked: str | None, workload: str | None, log_unit: str | None) -> str | None:
    """What a log must count itself, because it does not follow from the samples.

    Args:
        asked: what to count; None: samples, whatever they are called.
        workload: what was trained, if it is known.
        log_unit: the unit that the log's format prints, if it is always the same.

    Returns:
        The name of the count; None if samples are asked for.
    """
    samples = {log_unit, unit_of(workload)} - {None}
    return None if asked is None or per_second(asked) in samples else asked
