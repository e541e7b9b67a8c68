"""Reports' folders of one table, and a call of a command that reads them."""

from collections.abc import Callable
from pathlib import Path

from reperf.cli import main
from reperf.tables import MEASUREMENTS, write_table

from tests.helpers.runs import RUN

STEADY = [100.0, 100.1, 100.2, 100.3, 99.9, 99.8, 99.7]
_CELL = dict.fromkeys(MEASUREMENTS) | RUN.identity | RUN.setting
ROW = _CELL | {"status": "ok", "unit": "images/s", "method": "window", "first": 20, "last": 120}


def written_report(
    folder: Path, factor: float = 1.0, rows: list[dict] | None = None, **changes: object
) -> Path:
    """Write a report's folder with a table of one cell, or of the rows that are given."""
    usual = [
        ROW
        | {"repeat": repeat, "throughput": throughput * factor}
        | {"log": f"results/runs/small/pytorch/1n2g/{repeat}/train.log"}
        | changes
        for repeat, throughput in enumerate(STEADY, 1)
    ]
    results = folder / "results"
    results.mkdir(parents=True)
    write_table(results / "measurements.csv", usual if rows is None else rows, MEASUREMENTS)
    return results


def caller(capsys, command: str) -> Callable[..., tuple[int, str, str]]:
    """Call a command: the exit status, and what is printed on either stream."""

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([command, *map(str, arguments)])
        except SystemExit as left:
            status = left.code
        return status, *capsys.readouterr()

    return call
