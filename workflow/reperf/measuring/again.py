"""Whether tables are what their logs give: measured once more, and compared to the byte."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from reperf.config import Cell, Suite
from reperf.errors import ReperfError
from reperf.layout import tables_of
from reperf.measuring.log_sources import measure_suite
from reperf.measuring.summary import summarise
from reperf.measuring.tables import MEASUREMENTS, SUMMARY, read_measurements, table_of


def check_tables(suite: Suite, cells: Sequence[Cell], plans: Mapping[str, str]) -> None:
    """Refuse tables of a suite that are not what its logs and records give.

    A list of digests cannot prove itself, so a table and its digest may have been edited together.

    Args:
        cells: of the suite, with known batch sizes.
        plans: a run's folder -> the digest of its plan.

    Raises:
        ReperfError: names the table.
    """
    runs = [run for cell in cells if not cell.unsupported for run in cell.runs]
    measurements, summary = tables_of(suite.name)
    _compare(measurements, table_of(measure_suite(suite, runs, plans), MEASUREMENTS))
    measured = read_measurements(measurements)
    rows = summarise(measured, cells, unit=suite.unit, baseline=suite.baseline)
    _compare(summary, table_of(rows, SUMMARY))


def _compare(table: str, text: str) -> None:
    if Path(table).read_bytes() != text.encode():
        raise ReperfError(
            f"{table}: is not what the logs give; allowed: as measured; once it is removed, the "
            "next call makes it again"
        )
