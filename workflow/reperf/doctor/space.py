"""How much a report has yet to write into the work folder."""

from pathlib import Path

from reperf.builds import build_of
from reperf.config import Data, Report
from reperf.data.kinds import KINDS

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
    converted = {run.data: data for run, data in runs if run.data and run.input != "folder"}
    to_convert = [
        data for folder, data in converted.items() if not Path(folder, "manifest.json").exists()
    ]
    to_build = {build_of(run).folder for run, _ in runs if built[build_of(run).id] is None}
    return (
        len(missing) * LOG_BYTES
        + sum(map(_record_bytes, to_convert))
        + len(to_build) * ENVIRONMENT_BYTES[report.resolved_device]
        + sum(KINDS[data.kind].embedded_bytes for data in report.data if data.is_embedded)
    )


def _record_bytes(data: Data) -> int:
    """The size of a set's records."""
    kind = KINDS[data.kind]
    if data.is_embedded:
        return kind.embedded_bytes * data.passes
    return kind.record_bytes(data)
