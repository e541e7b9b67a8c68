"""A suite's tables from its logs, and whether those that lie there are the same to the byte."""

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from reperf.config import Cell, Suite, runs_of
from reperf.errors import ReperfError
from reperf.layout import tables_of
from reperf.measuring.suite_rows import measure_suite
from reperf.measuring.summary import summarise
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, table_of


def measured_tables(
    suite: Suite, cells: Sequence[Cell], plans: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Measure and summarise a suite: the tables' names and their texts.

    Args:
        cells: of the suite, with known batch sizes.
        plans: a run's folder -> the digest of its plan; left out: any record's will do.
    """
    measurements = table_of(measure_suite(suite, runs_of(cells), plans), MEASUREMENTS)
    measured = read_measurements(StringIO(measurements))
    rows = summarise(measured, cells, unit=suite.unit, baseline=suite.baseline)
    return dict(zip(tables_of(suite.name), (measurements, table_of(rows, SUMMARY)), strict=True))


def check_tables(suite: Suite, cells: Sequence[Cell], plans: Mapping[str, str]) -> None:
    """Refuse tables of a suite that are not what its logs and records give.

    A list of digests cannot prove itself, so a table and its digest may have been edited together.
    """
    for table, text in measured_tables(suite, cells, plans).items():
        if Path(table).read_bytes() != text.encode():
            raise ReperfError(
                f"{table}: is not what the logs give; allowed: as measured; once it is removed, "
                "the next call makes it again"
            )
