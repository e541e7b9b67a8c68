"""What a report has yet to write into the work folder."""

from pathlib import Path

from reperf.builds import build_of
from reperf.config import Report

LOG_BYTES = 2 * 10**6
"""A run's log and record, including tries and copies; 200 kB is usual."""
ENVIRONMENT_BYTES = {"cpu": 2 * 10**9, "cuda": 12 * 10**9}
"""One environment: PyTorch for CPUs took 1 GB, and CUDA's libraries take several times that."""


def needed_bytes(report: Report, built: dict[str, str | None]) -> int:
    """An estimate on the safe side: runs, environments and record files that are not there yet.

    Args:
        report: with its device decided.
        built: build -> SHA-256 of what it was made from; None: not made, or of another recipe.
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
        + sum(data.of_kind.record_bytes() for data in to_convert)
        + sum(ENVIRONMENT_BYTES[device] for device in to_build.values())
        + sum(data.of_kind.embedded_bytes for data in report.data if data.is_embedded)
    )
