"""One side of a comparison: a report's tables and records, or logs that are measured now."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from math import isfinite
from pathlib import Path, PurePath
from statistics import median
from typing import TextIO, get_args

import pandas as pd

from reperf.config.suite import shown_variant
from reperf.errors import ReperfError
from reperf.layout import ALL_MEASUREMENTS, DIAGNOSIS, RUN_RECORD, SUITE_MEASUREMENTS
from reperf.logs.configured import DATA_PARALLEL
from reperf.logs.facts import FACT_NAMES, Facts
from reperf.logs.formats import format_called
from reperf.measuring import SUMMED
from reperf.measuring.archives import DAMAGE, ArchivedFile, open_archive
from reperf.measuring.comparison import measured
from reperf.measuring.duplicates import DuplicateFinder
from reperf.measuring.found_logs import MeasureRequest, RunResult, measure_paths
from reperf.measuring.measure import Method
from reperf.measuring.suite_rows import Row, columns_of
from reperf.member_names import fault_of_name
from reperf.records.cell_key import parts_of
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import RunRecord
from reperf.tables import CELL, MEASUREMENTS, read_measurements, table_of
from reperf.text import count
from reperf.values import Status

_STATUSES = (*get_args(Status), "refused")
ALLOWED = (
    "a report's folder, its archive, a measurements.csv, or logs: a file, a folder or an archive"
)
Differences = dict[str, tuple[list[str], list[str]]]  # what differs -> its values in either report
_TABLE = PurePath(ALL_MEASUREMENTS)
READINGS = ("CPU governor", "CPU clock", "CPU quota", "GPU clocks", "GPU power limit", "GPU MIG")
"""The doctor's checks that say how fast a node may run."""
_DIGITS = 12  # of a digest


@dataclass(frozen=True)
class Side:
    """One of two reports."""

    path: Path  # what was given
    table: pd.DataFrame  # as read_measurements gives it; every throughput is positive
    # of its runs, by the names of their logs, where they are to be had
    records: dict[str, RunRecord]
    refused: int = 0  # how many logs gave no number, and belong to no cell
    # clocks and limits of its nodes, if `reperf doctor` looked: check -> what it read
    readings: dict[str, set[str]] = field(default_factory=dict)


def read_side(path: Path) -> Side:
    """Read the tables of a report, or measure logs.

    Args:
        path: a report's folder or the one around it, an archive, a measurements.csv; or a log, a
            folder or an archive of logs.

    Raises:
        ReperfError: the path holds none of these, or cannot be read.
    """
    if not path.exists():
        raise ReperfError(f"{path}: no such file or folder; allowed: {ALLOWED}")
    return read_report(path) or _of_logs(path)


def read_report(path: Path) -> Side | None:
    """Read the tables of a report; None where there are none.

    Raises:
        ReperfError: a table or the archive cannot be read.
    """
    suite_tables = SUITE_MEASUREMENTS.format(suite="*")
    try:
        # The measurements of all suites lie in one table or in several.
        joined = [path] if path.suffix == ".csv" else [path / _TABLE.name, path / _TABLE]
        found = [table for table in joined if table.is_file()][:1]
        if tables := found or sorted(path.glob(suite_tables)):
            readings: dict[str, set[str]] = {}
            for table in tables:
                readings |= _readings(table.with_name(DIAGNOSIS.name))
            return _side(
                path, [(table, partial(_record_near, table)) for table in tables], readings
            )
        if path.suffix == ".zip":
            with open_archive(path) as files:
                inside = {file.name: file for file in files}
                names = [name for name in inside if PurePath(name).match(suite_tables)]
                record = partial(_record_inside, path, inside)
                texts = [_NamedText(_content(path, inside, name), path / name) for name in names]
                return _side(path, [(text, record) for text in texts]) if names else None
    except OSError as error:
        raise ReperfError(f"{path}: {error.strerror}; allowed: {ALLOWED}") from None
    return None


def _side(
    path: Path,
    tables: Iterable[tuple[Path | TextIO, Callable[[str], RunRecord | None]]],
    readings: dict[str, set[str]] | None = None,
) -> Side:
    """A report by its tables, each with what reads a record by its name."""
    read: list[pd.DataFrame] = []
    records = {}
    for table, record in tables:
        read.append(_checked(read_measurements(table), str(table)))
        for log in filter(None, read[-1]["log"]):
            name = str(PurePath(log).with_name(RUN_RECORD))
            with suppress(ReperfError):  # of another version, or changed
                if not fault_of_name(name) and (found := record(name)):
                    records[log] = found
    return Side(path, pd.concat(read, ignore_index=True), records, readings=readings or {})


def _record_near(table: Path, name: str) -> RunRecord | None:
    """The record of this name below the nearest folder around a table that has one."""
    files = (folder / name for folder in table.absolute().parents)
    return next((RunRecord.read(file) for file in files if file.is_file()), None)


def _record_inside(path: Path, inside: Mapping[str, ArchivedFile], name: str) -> RunRecord | None:
    return RunRecord.parse(_content(path, inside, name), name) if name in inside else None


def _content(path: Path, inside: Mapping[str, ArchivedFile], name: str) -> bytes:
    try:
        with inside[name].open() as stream:
            return stream.read()
    except DAMAGE as error:
        raise ReperfError(f"{path}/{name}: damaged in the archive: {error}") from None


def _readings(path: Path) -> dict[str, set[str]]:
    """The clocks and limits that the doctor read on the nodes."""
    found: dict[str, set[str]] = defaultdict(set)
    diagnosis = Diagnosis.read(path)
    for probe in diagnosis.probes.values() if diagnosis else ():
        for check, verdict in probe.readings.items():
            if check in READINGS:
                found[check].add(verdict.what)
        for name, value in probe.settings.items():
            found[name].add(value)
    return found


class _NamedText(StringIO):
    """The text of a file, which messages call by its name."""

    def __init__(self, content: bytes, name: Path) -> None:
        super().__init__(content.decode(errors="replace"))
        self._name = name

    def __str__(self) -> str:
        return str(self._name)


def _checked(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table itself, if its statuses are known and its throughputs can be divided."""
    for line, status in table["status"].items():
        if status not in _STATUSES:
            raise ReperfError(
                f"{name}: line {int(line) + 2}: status is {status!r}; "
                f"allowed: {', '.join(_STATUSES)}"
            )
    for line, throughput in measured(table)["throughput"].items():
        if not (isfinite(throughput) and throughput > 0):
            raise ReperfError(
                f"{name}: line {int(line) + 2}: throughput is {throughput}, of a run that is ok; "
                "allowed: a number above 0"
            )
    return table


def _of_logs(path: Path) -> Side:
    """Measure logs; a log that gives no number is in no cell, unless it is of a run of ours."""
    request = MeasureRequest(Method(otherwise_widest=True), digests=True)
    results = list(measure_paths([path], request, processes=len(os.sched_getaffinity(0))))
    if all(result.measured.code in ("no-log", "unknown-format") for result in results):
        raise ReperfError(f"{path}: no report and no log is in it; allowed: {ALLOWED}")
    duplicates, rows = DuplicateFinder(), []
    for result in results:
        row = _row_of(path, result)
        cell = tuple(row[column] for column in CELL)
        log = str(row["log"])
        if row["status"] == "ok" and (why := duplicates.reason(log, cell, result)):
            row |= {"status": "refused", "reason": why}
        if row["status"] == "ok" or result.record:
            rows.append(row)
    table = read_measurements(StringIO(table_of(rows, MEASUREMENTS)))
    records = {result.measured.log: result.record for result in results if result.record}
    return Side(path, table, records, refused=len(results) - len(rows))


def _row_of(path: Path, result: RunResult) -> Row:
    """A row of measurements.csv of a log that no suite has asked for: its folder is the suite."""
    measured_run, facts, record = result.measured, result.facts, result.record
    row = columns_of(result)
    if record:
        row |= record.run.identity | record.run.setting | {"repeat": record.run.repeat}
        bad = {"status": record.status, "reason": record.reason, "throughput": None}
        return row if record.status == "ok" else row | bad
    program = measured_run.format and format_called(measured_run.format).system
    nodes, devices = facts.get("nodes"), facts.get("devices_per_node")
    topology = f"{nodes}n{devices}g" if nodes and devices else None
    if topology is None and measured_run.world_size:
        topology = count(measured_run.world_size, "device")
    parallel = facts.get("parallel")
    folder = PurePath(measured_run.log.removeprefix(str(path)).lstrip("/")).parent
    return row | {
        "suite": "" if str(folder) == "." else str(folder),
        "system": facts.get("system") or facts.get("framework") or program or measured_run.format,
        "workload": facts.get("workload"),
        "precision": facts.get("precision"),
        "variant": facts.get("variant") or _switched_on(facts),
        "batch_size_per_device": facts.get("batch_size"),
        "topology": topology,
        "num_nodes": nodes,
        "devices_per_node": devices,
        "input": facts.get("input"),
        "device": facts.get("device"),
        "shape": _sizes(result),
        "parallel": None if parallel == DATA_PARALLEL else parallel,
    }


def _switched_on(facts: Facts) -> str | None:
    """The switches of a trainer that a log says are on."""
    switches = [name for name in facts.sources() if name not in FACT_NAMES]
    on = "+".join(str(name) for name in switches if facts.get(name) is True)
    return shown_variant(on, facts.get("accumulation"))


def _sizes(result: RunResult) -> str:
    """All numbers that a log says of what was trained, so that no two things are one cell."""
    facts = result.facts
    names = [name for name in facts.sources() if name not in FACT_NAMES]
    names += ["parameters"] if facts.get("workload") is None else []
    sizes = {str(name): facts.get(name) for name in names if type(facts.get(name)) in (int, float)}
    if facts.get("batch_size") is None:
        sizes["global_batch"] = result.measured.global_batch
    known = (f"{name}={size}" for name, size in sizes.items() if size is not None)
    return " ".join(sorted(known))


def seconds_to_first_step(side: Side, runs: pd.DataFrame) -> float | None:
    """Median seconds from a run's start to the end of its first step; None: no record says it.

    A record holds the seconds until the first printed step. The steps before it, except the first,
    are assumed to take as long as those of the window.
    """
    known = []
    for row in measured(runs).itertuples():
        record = side.records.get(row.log)
        if record and record.seconds_to_print and row.method != SUMMED:
            step = row.seconds / (row.last - row.first)
            known.append(record.seconds_to_print - (record.run.print_every - 1) * step)
    return median(known) if known else None


def differences(base: Side, new: Side, runs: tuple[pd.DataFrame, pd.DataFrame]) -> Differences:
    """What differs between two reports apart from their numbers: name -> the values in each.

    Args:
        runs: for each report, the rows of the cells that both have.
    """
    of_base, of_new = (_known(side, some) for side, some in zip((base, new), runs, strict=True))
    if base.readings and new.readings:
        of_base, of_new = of_base | base.readings, of_new | new.readings
    names = dict.fromkeys([*of_base, *of_new])
    # A record says all that there was, but what doctors read; without one, nobody knows.
    nothing = {name: {"none"} for name in names if name not in base.readings | new.readings}
    of_base, of_new = (
        nothing | known if any(log in side.records for log in some["log"]) else known
        for side, some, known in zip((base, new), runs, (of_base, of_new), strict=True)
    )
    return {
        name: (sorted(of_base.get(name, ())), sorted(of_new.get(name, ())))
        for name in names
        if of_base.get(name) != of_new.get(name)
    }


def _known(side: Side, runs: pd.DataFrame) -> dict[str, set[str]]:
    """What is known about runs by their rows and records: name -> values."""
    known: dict[str, set[str]] = defaultdict(set)
    for key in set(runs["key"]) - {""}:
        for name, part in parts_of(key):
            known[name].add(part)
    for words in set(runs["hosts"]):
        known["hosts"].update(words.split())
    known["commit of reperf"].update(set(runs["commit"]) - {""})
    for log in runs["log"]:
        if record := side.records.get(log):
            for name, value in _recorded(record):
                if value not in (None, ""):
                    known[name].add(str(value))
    return {name: values for name, values in known.items() if values}


def _recorded(record: RunRecord) -> Iterator[tuple[str, object]]:
    """What a record says of a run's machine, framework and settings."""
    host, environment = record.host, record.environment
    yield from (
        ("CPU", host.cpu),
        ("driver", host.driver),
        ("kernel", host.kernel),
        ("operating system", environment.system or host.os),
        ("Python", environment.python),
        ("framework", environment.framework),
        ("CUDA", environment.cuda),
        ("ROCm", environment.rocm),
        ("NCCL", environment.nccl),
        ("trainer", record.trainer[:_DIGITS]),
        ("data", (record.data_sha256 or "")[:_DIGITS]),
        ("computed in", record.computed_in),
    )
    for gpu in host.gpus:
        yield "GPU", gpu.name
    for prefix, values in (
        ("package", environment.packages),
        ("setting", record.settings),
        ("cluster", record.cluster or {}),
    ):
        yield from ((f"{prefix} {name}", value) for name, value in values.items())
