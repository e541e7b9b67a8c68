"""The two tables that everything after measuring reads, as CSV files with equal bytes everywhere.

Numbers are written with as many digits as it takes to read the same number back, an empty field
means no value, lines end with a line feed. Text is written as reperf.text.as_field makes it.
"""

import csv
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from reperf.errors import ReperfError
from reperf.files import write_whole
from reperf.text import field_of, from_field

_FIRST = {
    "suite": str,
    "system": str,
    "workload": str,
    "precision": str,
    "variant": str,
    "batch_size_per_device": int,
    "topology": str,
    "num_nodes": int,
    "devices_per_node": int,
}
_LAST = {"parallel": str, "servers": str}

IDENTITY = _FIRST | _LAST
"""The columns that name a cell, with the type of their values; `source` is one more."""

SETTING = {"input": str, "shape": str, "device": str}  # what else was asked of a cell

ORIGIN = {"hosts": str, "date": str, "commit": str, "key": str}
"""Where a cell was measured, when, by which reperf; and what tables of several reports join on."""

CELL = (*IDENTITY, "source")  # the columns that tell a cell from all others

MEASUREMENTS = _FIRST | {
    "repeat": int,
    "status": str,
    "reason": str,
    "throughput": float,
    "unit": str,
    "first": int,
    "last": int,
    "samples": float,
    "seconds": float,
    "method": str,
    "global_batch": int,
    "world_size": int,
    "log": str,
    "log_sha256": str,
    "source": str,
    "waited": float,
    "also_throughput": float,
    "also_unit": str,
    "start_loss": float,
    **SETTING,
    **_LAST,
    **ORIGIN,
    "load_before": float,
    "load_during": float,
    "gpu_processes": int,
    "peak_memory": int,
    "peak_memory_is": str,
    "estimated_memory": int,
    "joules": float,
    "matrix_rate": float,
    "data_sheet_rate": float,
    "stage_memory": str,
    "slowest_rank": int,
    "slowest_rank_behind": float,
    "shared_cpus": int,
    "throttled": float,
    "mhz": float,
    "unconfirmed": str,
    "warnings": str,
    "step_times": str,
}  # the columns of measurements.csv, one row per run; docs/measuring.md explains each

SUMMARY = _FIRST | {
    "status": str,
    "reason": str,
    "n": int,
    "throughput_median": float,
    "throughput_min": float,
    "throughput_max": float,
    "throughput_iqr": float,
    "ci_low": float,
    "ci_high": float,
    "ci_level": float,
    "unit": str,
    "speedup": float,
    "efficiency": float,
    "method": str,
    "source": str,
    "baseline": str,
    "waited": float,
    "also_median": float,
    "also_unit": str,
    **SETTING,
    **_LAST,
    **ORIGIN,
    "load": float,
    "gpu_processes": int,
    "speedup_low": float,
    "speedup_high": float,
    "per_device": float,
    "step_ms": float,
    "flop_utilisation": float,
    "data_sheet_utilisation": float,
    "peak_memory": int,
    "peak_memory_is": str,
    "estimated_memory": int,
    "joules_per_sample": float,
    "stage_memory": str,
    "epoch_seconds": float,
    "shared_cpus": int,
    "throttled": float,
    "mhz_min": float,
    "mhz_max": float,
    "unconfirmed": str,
    "warnings": str,
    "marks": str,
}  # the columns of summary.csv, one row per cell; docs/measuring.md explains each


def schema_of_row(name: str, columns: Mapping[str, type]) -> dict[str, Any]:
    """The JSON Schema of a row of a table, as it is after an empty field was read as null."""
    types = {str: "string", int: ["integer", "null"], float: ["number", "null"]}
    return {
        "title": name,
        "description": f"A row of {name}.csv; docs/measuring.md explains each column.",
        "type": "object",
        "properties": {column: {"type": types[kind]} for column, kind in columns.items()},
        "required": list(columns),
    }


def write_table(
    path: Path | str, rows: Iterable[Mapping[str, Any]], columns: Iterable[str]
) -> None:
    """Write rows as CSV; None and NaN become empty fields."""
    write_whole(path, table_of(rows, columns))


def table_of(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> str:
    """Rows as CSV; None and NaN become empty fields.

    Examples:
        >>> print(table_of([{"n": 7, "median": 384.85}], ["n", "median"]), end="")
        n,median
        7,384.85
    """
    columns, text = list(columns), StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    cells = ([row[column] for column in columns] for row in rows)
    writer.writerows(["" if pd.isna(cell) else field_of(cell) for cell in row] for row in cells)
    return text.getvalue()


def read_measurements(path: Path | str | TextIO) -> pd.DataFrame:
    """Read measurements.csv; whole numbers become Int64; no value is <NA>, NaN or, in text, "".

    Raises:
        ReperfError: the file cannot be read, or is no such table.

    Examples:
        >>> empty = read_measurements(StringIO(table_of([], MEASUREMENTS)))
        >>> str(empty["global_batch"].dtype), str(empty["throughput"].dtype)
        ('Int64', 'float64')
    """
    return _read(path, MEASUREMENTS)


def read_summary(path: Path | str | TextIO) -> pd.DataFrame:
    """Read summary.csv; whole numbers become Int64; no value is <NA>, NaN or, in text, "".

    Raises:
        ReperfError: the file cannot be read, or is no such table.

    Examples:
        >>> list(read_summary(StringIO(table_of([], SUMMARY)))) == list(SUMMARY)
        True
    """
    return _read(path, SUMMARY)


def _read(path: Path | str | TextIO, columns: Mapping[str, type]) -> pd.DataFrame:
    try:
        # The C engine takes a field that is missing for an empty one.
        table = pd.read_csv(path, dtype=str, keep_default_na=False, engine="python")
    except OSError as error:
        raise ReperfError(
            f"{path}: {error.strerror}; run `make report`, or name a table that a report made"
        ) from None
    except ValueError as error:
        raise ReperfError(f"{path}: not a table: {str(error).strip()}") from None
    for column in columns:
        if column not in table.columns:
            raise ReperfError(f"{path}: column {column} is missing; allowed: a table of reperf 1.0")
    fields = table.notna().sum(axis=1)  # empty fields are ""
    for line, found in fields[fields < len(table.columns)].items():
        raise ReperfError(
            f"{path}: line {int(line) + 2} ends after {found} of {len(table.columns)} fields; "
            "copy the whole file again"
        )
    for column, kind in columns.items():
        if kind is str:
            table[column] = table[column].map(from_field)
        else:
            table[column] = _numbers(path, table[column], kind)
    return table


def _numbers(path: Path | str | TextIO, texts: pd.Series, kind: type) -> pd.Series:
    numbers = []
    for line, text in enumerate(texts, start=2):
        try:
            numbers.append(kind(text) if text else None)
        except ValueError:
            raise ReperfError(
                f"{path}: line {line}: {texts.name} is {text!r}; allowed: a number"
            ) from None
    return pd.Series(numbers, dtype="Int64" if kind is int else "float64")


def join_tables(
    paths: Iterable[Path | str], output: Path | str, columns: Mapping[str, type]
) -> None:
    """Write several tables one below the other, in the order of the paths."""
    rows = [row for path in paths for row in _read(path, columns).to_dict("records")]
    write_table(output, rows, columns)
