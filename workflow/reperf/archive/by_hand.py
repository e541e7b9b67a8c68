"""A number by hand: the two lines of a log that it follows from, and the division of every run.

Whoever receives an archive can then check a number with an editor and a pocket calculator.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import isclose
from pathlib import Path
from typing import Any

import pandas as pd

from reperf.layout import RUN_LOG, SUITE_MEASUREMENTS
from reperf.logs.checks import Refused
from reperf.logs.format import Format, Record
from reperf.logs.log_file import opened
from reperf.logs.recognise import recognise
from reperf.logs.scan import find_records
from reperf.measuring.counts import ANY
from reperf.member_names import SOURCES
from reperf.tables import table_of
from reperf.text import field_of, printable

DIVISION = (
    *("run", "log", "first", "last", "samples", "seconds"),
    *("quotient", "throughput", "unit", "method", "status"),
)
"""The columns of check.csv."""
_QUOTED = 600  # how many characters of a line are quoted. Those of our own logs are half as long.
_NO_EXAMPLE = "  No number of this suite follows from two lines of a log alone."
_NO_NUMBER = "  No number of this suite was measured."

Row = Mapping[str, Any]
_Line = tuple[int, Record]  # a record, and the number of its line, from 1


def check_table(measurements: pd.DataFrame) -> str:
    """The division of every run of a suite as CSV, in the order of measurements.csv.

    `log` is the run's file in the archive, `quotient` is samples / seconds, and `throughput` is the
    table's number. The other columns are copied from measurements.csv.
    """
    rows = (
        row
        | {"run": _name_of(row), "log": _file_of(row)}
        | {"quotient": row["samples"] / row["seconds"] if row["seconds"] > 0 else None}
        for row in measurements.to_dict("records")
    )
    return table_of(rows, DIVISION)


def worked_example(measurements: pd.DataFrame, place: Callable[[str], Path]) -> str:
    """The division of the first run whose number follows from two lines of its log, for the README.

    That of others may not: lines may print durations in place of times, a log may be compressed,
    and a window may lie around evaluations.

    Args:
        place: gives the file here that is called so in the archive.
    """
    measured = measurements[(measurements["status"] == "ok") & (measurements["method"] == "window")]
    for row in measured.to_dict("records"):
        with suppress(OSError, Refused):
            if example := _example(row, place(_file_of(row))):
                return example
    return _NO_EXAMPLE if "ok" in {*measurements["status"]} else _NO_NUMBER


def _file_of(row: Row) -> str:
    """The name of a run's log in the archive."""
    return (SOURCES / row["log"]).as_posix() if row["source"] else str(row["log"])


def _name_of(row: Row) -> str:
    """A run by the part of its path that tells it from others."""
    own = str(row["log"]).removeprefix(f"results/runs/{row['suite']}/")
    return own.removesuffix(f"/{RUN_LOG}")


def _example(row: Row, log: Path) -> str:
    """The division of a run, line by line; "" if its number does not follow from two lines."""
    found = _ends(log, (row["first"], row["last"]))
    if found is None:
        return ""
    log_format, (start, stop) = found
    samples = _samples(row, start[1], stop[1])
    seconds = _seconds(row, log_format, start[1], stop[1])
    if not samples or not seconds:
        return ""
    quotient = row["samples"] / row["seconds"]
    lines = {
        "run": _name_of(row),
        "file": _file_of(row),
        f"line {start[0]}": _quoted(start[1]),
        f"line {stop[0]}": _quoted(stop[1]),
        "samples": samples,
        "seconds": seconds,
        "quotient": f"{row['samples']:.10g} / {row['seconds']:.10g} = {quotient:.10g}",
        "table": f"{field_of(row['throughput'])} {row['unit']}, in "
        + SUITE_MEASUREMENTS.format(suite=row["suite"]),
    }
    width = max(map(len, lines)) + 2
    return "\n".join(f"  {label:{width}}{printable(text)}" for label, text in lines.items())


def _ends(log: Path, ends: tuple[int, int]) -> tuple[Format, tuple[_Line, _Line]] | None:
    """The first lines of one rank that print two iterations, and the format of their log."""
    seen: defaultdict[tuple[int, ...], dict[int, _Line]] = defaultdict(dict)
    with log.open("rb") as stream:
        log_format = recognise(opened(stream))
        read = log_format.reader()
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            for _, _, record in find_records(line, log_format, read):
                if record.iteration in ends:
                    lines = seen[record.rank]
                    lines.setdefault(record.iteration, (number, record))
                    if len(lines) == 2:
                        return log_format, (lines[ends[0]], lines[ends[1]])
    return None


def _samples(row: Row, start: Record, stop: Record) -> str:
    """How the samples of a window follow from the lines at its ends; "" if they do not."""
    amount = f"{row['samples']:.10g}"
    for name in (row["unit"].removesuffix("/s"), ANY):
        before, after = dict(start.counts).get(name), dict(stop.counts).get(name)
        if before is not None and after is not None and after - before == row["samples"]:
            return f"{field_of(after)} - {field_of(before)} = {amount}"
    steps, batch = row["last"] - row["first"], row["global_batch"]
    if pd.notna(batch) and steps * batch == row["samples"]:
        return f"({row['last']} - {row['first']}) x {batch} (the global batch) = {amount}"
    return ""


def _seconds(row: Row, log_format: Format, start: Record, stop: Record) -> str:
    """How the seconds of a window follow from the lines at its ends; "" if they do not."""
    if start.time is None or stop.time is None or log_format.clock is None:
        return ""
    between = log_format.clock.between(start.time, stop.time)
    if not isclose(between, row["seconds"], rel_tol=1e-9, abs_tol=1e-9):
        return ""
    amount = f"{row['seconds']:.10g}"
    written = [(field_of(record.time), record.text) for record in (start, stop)]
    if all(time.encode() in text for time, text in written):
        return f"{written[1][0]} - {written[0][0]} = {amount}"
    return f"{amount}, from the time of the first line to that of the second"


def _quoted(record: Record) -> str:
    text = record.text.decode(errors="replace").strip()
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
