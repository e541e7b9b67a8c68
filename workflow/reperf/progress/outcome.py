"""What came of a job: a run's throughput or status, or why it failed, in lines for people."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reperf.errors import ReperfError
from reperf.layout import SUITE_PLAN
from reperf.plans.plan_files import SuitePlan
from reperf.records.run_record import LARGEST_RECORD
from reperf.text import printable

if TYPE_CHECKING:
    from reperf.measuring.measure import Method

LONGEST = 1000
"""Characters of a line; the log holds longer ones."""
_TAIL = 64 * 1024

State = tuple[int, int] | None
"""A file's time stamp in ns and its size in bytes, which differ once it is written again."""


def of_run(record: Path, log: Path) -> tuple[bool, str]:
    """The result of a run that has ended, measured as for the report, by its suite's plan.

    Returns:
        Whether it is a result, and "25.30 images/s (12 s)" or the status and the reason.
    """
    try:
        with record.open(encoding="utf-8") as stream:
            content = json.loads(stream.read(LARGEST_RECORD))
        status, reason, seconds = content["status"], content["reason"], float(content["seconds"])
        took = f" ({duration(seconds)})" if seconds else ""
        if status == "ok":
            gave, good = _throughput(log, _method(content["run"]["suite"]))
            return good, gave + took
        return status in ("oom", "unsupported"), one_line(f"{status}: {reason}") + took
    except (ReperfError, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        return False, one_line(f"its record cannot be read: {error}")


@cache
def _method(suite: str) -> "Method":
    """How a suite is measured: its plan is written before the first job starts."""
    from reperf.measuring.measure import Method  # noqa: PLC0415 - a dry run does without

    suite_of_plan = SuitePlan.read(SUITE_PLAN.format(suite=suite)).suite
    return Method(window=suite_of_plan.window, unit=suite_of_plan.unit)


def _throughput(log: Path, method: "Method") -> tuple[str, bool]:
    from reperf.logs.formats import mllog  # noqa: PLC0415 - a dry run does without
    from reperf.measuring.measure import measure_log  # noqa: PLC0415

    with log.open("rb") as stream:
        measured = [*measure_log(str(log), stream, method, mllog.FORMAT)]
    if len(measured) != 1:
        return f"no throughput: {len(measured)} runs are in its log", False
    ((result, *_),) = measured
    if result.throughput is None:
        return one_line(f"no throughput: {result.reason}"), False
    return f"{result.throughput:,.2f} {result.unit}", True


def state_of(file: Path) -> State:
    """A file's State, to see later whether it was written again; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def reason_in(log: Path, before: State) -> str:
    """Why a job failed, as it wrote to its log: the line for people, else the last one.

    Args:
        before: the log's state when the job began; an unchanged log is an earlier try's.

    Returns:
        One line, "" if the job wrote nothing.
    """
    if state_of(log) in (None, before):
        return ""
    lines = tail(log)
    for_people = [line for line in lines if line.startswith("reperf: ")]
    return one_line((for_people or lines or [""])[-1].removeprefix("reperf: "))


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


def duration(seconds: float) -> str:
    """A time as you would say it: "3.2 s", "45 s", "12 min", "1 h 20 min"."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def about(seconds: float) -> str:
    """A time that is known no better than to the second."""
    return duration(seconds) if seconds >= 10 else f"{max(1, round(seconds))} s"


def one_line(text: str) -> str:
    """The text as one printable line, cut if it is longer than LONGEST."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} .."
