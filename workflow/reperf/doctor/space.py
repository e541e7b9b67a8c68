"""How much a report has yet to write into the work folder."""

from itertools import islice
from pathlib import Path

from reperf.builds import build_of
from reperf.config import Data, Report

LOG_BYTES = 2 * 10**6
"""A run's log and record, including tries and copies; 200 kB is usual."""
ENVIRONMENT_BYTES = {"cpu": 2 * 10**9, "cuda": 12 * 10**9}
"""One environment: PyTorch for CPUs took 1 GB, and CUDA's libraries take several times that."""
EMBEDDED_BYTES = {"images": 50 * 10**6, "text": 3 * 10**6}
"""The embedded sets."""
RECORDS_OF_TEXT = 2
"""Bytes of records for a byte of text, per pass."""
_CLASSES_MEASURED = 5


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
        + sum(EMBEDDED_BYTES[data.kind] for data in report.data if data.is_embedded)
    )


def _record_bytes(data: Data) -> int:
    """The size of a set's records."""
    if data.is_embedded:
        return EMBEDDED_BYTES[data.kind] * data.passes
    if data.kind == "text":
        return _bytes_below(data.text) * RECORDS_OF_TEXT * data.passes
    return _image_bytes(data.images)


def _bytes_below(text: Path) -> int:
    """The size of a file, or of all files of a folder, of which text has few."""
    files = text.rglob("*") if text.is_dir() else [text]
    return sum(path.stat().st_size for path in files if path.is_file())


def _image_bytes(images: Path) -> int:
    """The size of an image set, estimated from a few classes: network disks list files slowly."""
    train = images / "train"
    classes = sorted(path for path in train.glob("*") if path.is_dir())
    few = list(islice(classes, 0, None, max(1, len(classes) // _CLASSES_MEASURED)))
    seen = sum(image.stat().st_size for one in few for image in one.glob("*"))
    return seen * len(classes) // max(1, len(few))
