"""The runs that reperf made, as rows of measurements.csv."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from reperf.config import Run, Window
from reperf.errors import ReperfError
from reperf.facts import Fact, unit_of
from reperf.files import sha256
from reperf.logs import mllog
from reperf.measuring.measure import Measurement, Method, measure_log
from reperf.records import RunRecord
from reperf.systems import WORKLOADS


def measure_own_runs(folders: Iterable[Path], window: Window) -> list[dict]:
    """Measure runs that reperf made.

    Args:
        folders: each holds train.log and run.json.
        window: iterations of warm-up and in the window.

    Returns:
        The rows of measurements.csv, see reperf.tables.MEASUREMENTS.

    Raises:
        ReperfError: a run record that is none.
    """
    return [_measure_own_run(folder, Method(window=window)) for folder in folders]


def _measure_own_run(folder: Path, method: Method) -> dict:
    log, path = folder / "train.log", folder / "run.json"
    try:
        record = RunRecord.read(path)
    except (OSError, ValueError, ValidationError) as error:
        raise ReperfError(f"{path}: not a run record: {str(error).splitlines()[0]}") from None
    digest = sha256(log)
    if record.status != "ok":
        measured = Measurement(str(log), "mllog", "refused", reason=record.reason, method="")
        return row_of_run(record.run, measured, record.status, digest)
    if digest != record.log_sha256:
        reason = "the log has changed since its run record was written"
        measured = Measurement(str(log), "mllog", "refused", reason=reason)
    else:
        measured = _measure(log, record.run, method)
    return row_of_run(record.run, measured, measured.status, digest)


def _measure(log: Path, run: Run, method: Method) -> Measurement:
    sources = [("the run record", facts_of_run(run))]
    with log.open("rb") as stream:
        found = [one for one, _ in measure_log(str(log), stream, method, mllog.FORMAT, sources)]
    if len(found) == 1:
        return found[0]
    reason = f"{len(found)} runs are in one log; a run of ours writes one"
    return Measurement(str(log), "mllog", "refused", reason=reason)


def facts_of_run(run: Run) -> list[Fact]:
    """What a run's configuration says about its log."""
    return [
        ("workload", run.workload),
        ("parameters", WORKLOADS[run.workload]["parameters"]),
        ("batch_size", run.batch_size),
        ("nodes", run.nodes),
        ("devices_per_node", run.devices_per_node),
    ]


def row_of_run(run: Run, measured: Measurement, status: str, digest: str) -> dict:
    """One row of measurements.csv; its source is empty, because the run was made here."""
    return run.identity | {
        "repeat": run.repeat,
        "status": status,
        "reason": measured.reason,
        "throughput": measured.throughput,
        "unit": unit_of(run.workload),
        "first": measured.first,
        "last": measured.last,
        "samples": measured.samples,
        "seconds": measured.seconds,
        "method": measured.method,
        "global_batch": run.global_batch,
        "world_size": run.world_size,
        "log": measured.log,
        "log_sha256": digest,
        "source": "",
    }
