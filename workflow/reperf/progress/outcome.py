"""What came of a job: a run's throughput or status, and the reason why a job failed."""

import json
from collections.abc import Mapping
from pathlib import Path

from reperf.config import Suite
from reperf.logs.formats import mllog
from reperf.measuring.measure import Method, measure_log
from reperf.progress.phrases import duration, one_line
from reperf.training.record import LARGEST_RECORD

_TAIL = 64 * 1024

State = tuple[int, int] | None
"""A file's time stamp in ns and its size in bytes, which differ once it is written again."""


def of_run(record: Path, log: Path, suites: Mapping[str, Suite]) -> tuple[bool, str]:
    """The result of a run that has ended.

    Args:
        log: measured as for the report.
        suites: of the report, by name; they say what is measured.

    Returns:
        Whether it is a result, and "25.30 images/s (12 s)" or the status and the reason.
    """
    try:
        with record.open(encoding="utf-8") as stream:
            said = json.loads(stream.read(LARGEST_RECORD))
        status, reason, seconds = said["status"], said["reason"], float(said["seconds"])
        took = f" ({duration(seconds)})" if seconds else ""
        if status == "ok":
            gave, good = _throughput(log, suites.get(said["run"]["suite"]))
            return good, gave + took
        return status in ("oom", "unsupported"), one_line(f"{status}: {reason}") + took
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        return False, one_line(f"its record cannot be read: {error}")


def _throughput(log: Path, suite: Suite | None) -> tuple[str, bool]:
    method = Method(window=suite.window, unit=suite.unit) if suite else Method()
    with log.open("rb") as stream:
        found = [one for one, *_ in measure_log(str(log), stream, method, mllog.FORMAT)]
    if len(found) != 1:
        return f"no throughput: {len(found)} runs are in its log", False
    (one,) = found
    if one.throughput is None:
        return one_line(f"no throughput: {one.reason}"), False
    return f"{one.throughput:,.2f} {one.unit}", True


def state_of(file: Path) -> State:
    """A file's State, to see later whether it was written again; None if there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def reason_in(log: Path, before: State) -> str:
    """Why a job failed, as it wrote to its log: the line for people, else the last one.

    Args:
        log: the job's.
        before: the log's state when the job began; an unchanged log is an earlier try's.

    Returns:
        One line, "" if the job wrote nothing.
    """
    if state_of(log) in (None, before):
        return ""
    lines = tail(log)
    said = [line for line in lines if line.startswith("reperf: ")]
    return one_line((said or lines or [""])[-1].removeprefix("reperf: "))


def tail(log: Path) -> list[str]:
    """The last lines of a log that are not blank; none if it cannot be read."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL))
            text = stream.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]
