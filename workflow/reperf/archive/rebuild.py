"""The tables and figures of an archive, made again from its logs and compared with its own."""

import json
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import TypeVar
from zipfile import ZipFile

from reperf.archive.container import unpack, verified
from reperf.archive.suite import CELL_LIST, CELLS, CONFIG, figures_of, tables_of
from reperf.config import Cell, Report, Run, load_report
from reperf.errors import ReperfError
from reperf.figures import draw_suite
from reperf.measuring.log_sources import measure_suite
from reperf.measuring.summary import summarise
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, write_table

Content = TypeVar("Content")


def rebuild(path: Path, folder: Path) -> list[str]:
    """Unpack an archive's logs and make its tables and figures again, from them alone.

    Args:
        path: the archive.
        folder: new or empty; afterwards it holds what was unpacked and what was made.

    Returns:
        The tables and figures, which are those of the archive byte for byte.

    Raises:
        ReperfError: the archive is not what its manifest says, is not that of a suite, or a table
            or figure comes out differently; the message names the first. Nothing is written
            outside `folder`.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReperfError(f"{folder}: is there already; allowed: a new or empty folder")
    with verified(path) as archive:
        report = load_report(_read(archive, path, CONFIG, json.loads), f"{path}: {CONFIG}")
        cells = _read(archive, path, CELLS, CELL_LIST.validate_json)
        if not cells and not report.suites[0].sources:
            raise ReperfError(f"{path}: is not the archive of a suite: {CELLS} names no cell")
        runs = [run for cell in cells if not cell.unsupported for run in cell.runs]
        results = [*tables_of(report.suites[0].name), *figures_of(report.suites[0].name)]
        held = set(archive.namelist())
        for name in [*_files_to_measure(runs), *results]:
            if name not in held:
                raise ReperfError(f"{path}: is not the archive of a suite: {name} is not in it")
        for name in sorted(held - set(results)):
            unpack(archive, name, folder)
        with chdir(folder):
            make_results(report, cells, runs)
        for name in results:
            if (folder / name).read_bytes() != archive.read(name):
                raise ReperfError(f"{folder / name}: differs from the one in {path}")
    return results


def _read(archive: ZipFile, path: Path, name: str, parse: Callable[[bytes], Content]) -> Content:
    try:
        return parse(archive.read(name))
    except (KeyError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ReperfError(f"{path}: is not the archive of a suite: {name}: {reason}") from None


def _files_to_measure(runs: list[Run]) -> list[str]:
    return [f"{run.folder}/{name}" for run in runs for name in ("train.log", "run.json")]


def make_results(report: Report, cells: tuple[Cell, ...], runs: list[Run]) -> None:
    """Measure, summarise and draw in the working folder, as the workflow's rules do."""
    suite = report.suites[0].name
    measurements, summary = tables_of(suite)
    rows = measure_suite(report.suites[0], [run.folder for run in runs], report.window)
    write_table(measurements, rows, MEASUREMENTS)
    rows = summarise(read_measurements(measurements), cells)
    write_table(summary, rows, SUMMARY)
    draw_suite(summary, f"figures/{suite}")
