"""What a report needs of its nodes: room in the work folder, and loaders as fast as devices."""

from pathlib import Path

from reperf.builds import build_of
from reperf.config import Report, Run
from reperf.data.kinds import KINDS
from reperf.errors import ReperfError
from reperf.layout import ALL_SUMMARY
from reperf.tables import read_summary

LOG_BYTES = 2 * 10**6
"""A run's log and record, including tries and copies; 200 kB is usual."""
ENVIRONMENT_BYTES = {"cpu": 2 * 10**9, "cuda": 12 * 10**9}
"""One environment: PyTorch for CPUs took 1 GB, and CUDA's libraries take several times that."""


def needed_bytes(report: Report, built: dict[str, str | None]) -> int:
    """An estimate on the safe side: runs, environments and record files that are not there yet.

    Args:
        built: as in Case.
    """
    runs = [(run, report.data_of(suite)) for suite in report.suites for run in report.runs(suite)]
    missing = [run for run, _ in runs if not run.record.exists()]
    read = [(run, data) for run, data in runs if run.input != "folder"]
    converted = {run.data: data for run, data in read if run.data and data}
    to_convert = [
        data for folder, data in converted.items() if not Path(folder, "manifest.json").exists()
    ]
    to_build = {
        build_of(run).folder: run.device for run, _ in runs if built[build_of(run).id] is None
    }
    return (
        len(missing) * LOG_BYTES
        + sum(KINDS[data.kind].record_bytes(data) for data in to_convert)
        + sum(ENVIRONMENT_BYTES[device] for device in to_build.values())
        + sum(KINDS[data.kind].embedded_bytes for data in report.data if data.is_embedded)
    )


def needed_by(report: Report, run: Run) -> float | None:
    """Samples per second that the devices of one node train, if their loader never lets them wait.

    Taken from the cells of the report that lies here, measured on synthetic input: the same system,
    variant, workload and precision, the fastest per device.

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
        & (cells["variant"] == (run.shown_variant or ""))
        & (cells["parallel"] == (run.identity["parallel"] or ""))
        & (cells["servers"] == (run.identity["servers"] or ""))
        & (cells["status"] == "ok")
    ]
    if own.empty:
        return None
    per_device = own["throughput_median"] / (own["num_nodes"] * own["devices_per_node"])
    return float(per_device.max()) * report.on(run.device).largest_shape[1]
