"""Tables, figures and pages of an archive, made again from its logs and compared with its own."""

import json
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from zipfile import ZipFile

from reperf import __version__
from reperf.archive.by_hand import check_table
from reperf.archive.container import unpack, verified
from reperf.archive.contents import CELL_LIST
from reperf.config import Report, load_report, runs_of
from reperf.errors import ReperfError, faults_of
from reperf.files import write_whole
from reperf.layout import FIGURES, figures_of, tables_of
from reperf.measuring.recheck import measured_tables
from reperf.member_names import CELLS, CHECK, CONFIG, METADATA, PAGE, README, REPERF, SOURCES
from reperf.records.run_record import RunRecord, records_of, with_found_batch
from reperf.tables import read_measurements

Content = TypeVar("Content")


@dataclass(frozen=True)
class Rebuilt:
    """What was made again: the names of tables, figures and pages."""

    same: list[str]  # the same bytes as in the archive
    differ: list[str]
    """Figures and pages that came out otherwise, by another version of reperf or of a library."""
    made_with: list[str]
    """What made the archive and is of another version here, such as "matplotlib 3.10.0"."""


def verify(path: Path) -> int:
    """How many files an archive holds, if it is as it was written and its logs give its tables.

    Raises:
        ReperfError: as `rebuild` does.
    """
    with verified(path) as archive, TemporaryDirectory() as folder:
        _measure(archive, path, Path(folder))
        return len(archive.namelist())


def rebuild(path: Path, folder: Path) -> Rebuilt:
    """Unpack an archive's logs and make its tables, figures and pages again, from them alone.

    Tables must come out as they are in the archive. So must figures and pages, unless another
    version of reperf or of its libraries made them. Figures and pages of the archive are not
    copied, and nothing is written outside the folder.

    Args:
        folder: new or empty; afterwards it holds what was unpacked and what was made.

    Raises:
        ReperfError: the archive is not what its manifest says, not that of a suite or not one of
            reperf 1, or something comes out different; the message names all that does.
    """
    # Imported here because `verify` must work without the packages that draw and write pages.
    from reperf.archive.descriptions import made_with, pages  # noqa: PLC0415
    from reperf.drawing.figures import draw_suite  # noqa: PLC0415

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReperfError(f"{folder}: exists already; allowed: a new or empty folder")
    with verified(path) as archive:
        report, records = _measure(archive, path, folder)
        (suite,) = report.suites
        tables, kinds = tables_of(suite.name), report.figure_kinds(suite)
        with chdir(folder):
            draw_suite(tables[0], tables[1], FIGURES.format(suite=suite.name), kinds)
            for name, content in pages(report, records).items():
                write_whole(name, content)
        remade = [*figures_of(suite.name, kinds), README, PAGE]
        differ = [name for name in remade if (folder / name).read_bytes() != archive.read(name)]
        here = made_with()
        others = [maker for maker in _made_with(archive, path) if maker not in here]
    if differ and not others:
        raise ReperfError(
            f"{path}: {len(differ)} of {len(remade)} files differ from those made again in "
            f"{folder}: {', '.join(differ)}"
        )
    return Rebuilt(
        [*tables, CHECK] + [name for name in remade if name not in differ], differ, others
    )


def _measure(archive: ZipFile, path: Path, folder: Path) -> tuple[Report, list[RunRecord]]:
    """Unpack an archive into a folder, and measure its logs there; its report and its records."""
    report = load_report(config_in(archive, path), f"{path}: {CONFIG}")
    cells = _read(archive, path, CELLS, CELL_LIST.validate_json)
    if len(report.suites) != 1 or report.device == "auto":
        raise ReperfError(f"{path}: {CONFIG}: allowed: one suite, and a device other than auto")
    (suite,) = report.suites
    _check_sources(report, archive, path)
    tables, names = tables_of(suite.name), {*archive.namelist()}
    left = [str(file) for run in runs_of(cells) for file in (run.log, run.record)]
    figures = figures_of(suite.name, report.figure_kinds(suite))
    remade = [*tables, CHECK, *figures, README, PAGE]
    for name in [*left, *remade]:
        if name not in names:
            raise ReperfError(f"{path}: is not the archive of a suite: {name} is not in it")
    for name in sorted(names - {*remade}):
        unpack(archive, name, folder)
    with chdir(folder), faults_of(path):
        cells = tuple(cell.with_runs(with_found_batch) for cell in cells)
        again = measured_tables(suite, cells)
        again[CHECK] = check_table(read_measurements(StringIO(again[tables[0]])))
        records = list(records_of(runs_of(cells)))
        for name, text in again.items():
            write_whole(name, text)
    differ = [
        f"{name} from line {_first_other(text, archive.read(name).decode(errors='replace'))}"
        for name, text in again.items()
        if text.encode() != archive.read(name)
    ]
    if differ:
        raise ReperfError(f"{path}: its logs give other tables: {'; '.join(differ)}")
    return report, records


def _first_other(remade: str, archived: str) -> str:
    """The first line in which a table differs from the archived one, with its number."""
    pairs = zip_longest(remade.splitlines(), archived.splitlines(), fillvalue="")
    return next(
        f"{number} on: {new[:200]}" for number, (new, old) in enumerate(pairs, 1) if new != old
    )


def config_in(archive: ZipFile, path: Path) -> dict[str, Any]:
    """The configuration that an archive of reperf 1 holds, as JSON gives it; others are refused."""
    reperf = _made_with(archive, path)[0]
    if not reperf.startswith("reperf 1."):
        raise ReperfError(
            f"{path}: {reperf} made it; reperf {__version__} reads archives of reperf 1; "
            f"allowed: {reperf}, which reads this one"
        )
    return _read(archive, path, CONFIG, json.loads)


def _read(archive: ZipFile, path: Path, name: str, parse: Callable[[bytes], Content]) -> Content:
    try:
        return parse(archive.read(name))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ReperfError(f"{path}: is not the archive of a suite: {name}: {reason}") from None


def _made_with(archive: ZipFile, path: Path) -> list[str]:
    """What made an archive, such as "reperf 1.0.0" and "matplotlib 3.10.0"."""

    def parse(text: bytes) -> list[str]:
        entities = {entity["@id"]: entity for entity in json.loads(text)["@graph"]}
        maker = entities[REPERF]
        return [f"reperf {maker['version']}", *map(str, maker["softwareRequirements"])]

    return _read(archive, path, METADATA, parse)


def _check_sources(report: Report, archive: ZipFile, path: Path) -> None:
    """Refuse a configuration that measures anything but members of its own archive."""
    for source in report.suites[0].sources:
        inside = source.path.as_posix()
        below = any(name == inside or name.startswith(f"{inside}/") for name in archive.namelist())
        if source.path.parent != SOURCES or not below:
            why = f"{path}: {CONFIG}: from: {inside} is no member; allowed: files below {SOURCES}/"
            raise ReperfError(why)
