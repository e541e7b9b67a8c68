"""How many samples a node's devices need, by what they trained where nothing had to be loaded."""

from pathlib import Path

from reperf.config import Report, Run
from reperf.doctor.case import largest_shape
from reperf.errors import ReperfError
from reperf.layout import ALL_SUMMARY
from reperf.measuring.tables import read_summary


def needed_by(report: Report, run: Run) -> float | None:
    """Samples per second that the devices of one node train, if their loader never lets them wait.

    Taken from the cells of the report that lies here, measured on synthetic input: the same system,
    variant, workload and precision, the fastest per device.

    Args:
        report: what is to run.
        run: whose loader is looked at.

    Returns:
        None if nothing of the kind has been measured yet.
    """
    unloaded = {
        suite.name
        for suite in report.suites
        if suite.input == "synthetic"
        and (suite.workload, suite.precision) == (run.workload, run.precision)
        and suite.shape == run.shape
    }
    if not unloaded or not Path(ALL_SUMMARY).exists():
        return None
    try:
        cells = read_summary(ALL_SUMMARY)
    except ReperfError:
        return None
    own = cells[
        cells["suite"].isin(unloaded)
        & (cells["system"] == run.system)
        & (cells["variant"] == (run.variant or ""))
        & (cells["status"] == "ok")
    ]
    if own.empty:
        return None
    per_device = own["throughput_median"] / (own["num_nodes"] * own["devices_per_node"])
    return float(per_device.max()) * largest_shape(report)[1]
