"""What throughput is counted in."""

from reperf.systems import load_workloads


def unit_of(workload: object) -> str | None:
    """The unit of a workload's throughput, such as "images/s"."""
    return f"{load_workloads()[workload].units[0]}/s" if workload in load_workloads() else None
