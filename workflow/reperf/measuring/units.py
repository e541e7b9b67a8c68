"""What throughput is counted in."""

from reperf.systems import WORKLOADS


def unit_of(workload: object) -> str | None:
    """The unit of a workload's throughput, such as "images/s"."""
    return f"{WORKLOADS[workload]['unit']}/s" if workload in WORKLOADS else None
