"""Tables, figures and pages of an archive, made again from its logs and compared with its own."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import chdir, suppress
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar
from zipfile import ZipFile

from reperf import __version__
from reperf.archive.consistency import check_cells, check_records, hardware_in
from reperf.archive.container import MANIFEST, unpack, verified
from reperf.archive.contents import CELL_LIST
from reperf.archive.names import CELLS, CONFIG, METADATA, PAGE, README, REPERF, SOURCES
from reperf.archive.suite_pages import pages
from reperf.config import Cell, Report, load_report, runs_of
from reperf.drawing.figures import draw_suite
from reperf.errors import ReperfError, faults_of
from reperf.files import whole_file
from reperf.layout import FIGURES, FIRST_KINDS, RUN_RECORD, figures_of, tables_of
from reperf.measuring.again import measured_tables
from reperf.systems import ROOT
from reperf.tables import LATER
from reperf.training.record import records_of, with_found_batch
from reperf.written import read_written

Content = TypeVar("Content")
_EDITED = ", or somebody edited"
_SAME_NUMBERS = f"{_EDITED}; the numbers in its tables are the same"
_TITLES = f"{_EDITED}; titles and units are those of here"
_CELL = re.compile(rb"<td\b[^>]*>(.*?)</td>", re.DOTALL)
_TAG = re.compile(rb"<[^>]*>")
_DESCRIPTIONS = ("workflow/systems/", "workflow/workloads/")
_NUMBER = re.compile(rb"\d[\d.,]*")


@dataclass(frozen=True)
class Rebuilt:
    """What was made again."""

    same: list[str]
    """The same bytes as in the archive."""
    by_another: dict[str, tuple[str, str]]
    """What another version, or an earlier commit of this one, wrote otherwise: how it is made
    again ("as", "drawn as", "not as" in the archive), and what is other there."""
    maker: str
    """That version; "" if the archive does not say."""


def rebuild(path: Path, folder: Path) -> Rebuilt:
    """Unpack an archive's logs and make its tables, figures and pages again, from them alone.

    Another version of reperf, or an earlier commit of this one, words its pages otherwise, has no
    names for the groups of its figures, and lacks the last columns: that says nothing about the
    numbers. A page of this version may have other words, but no other numbers in its tables. All
    else in tables and figures must be the same. No page out of an archive is written to the folder.

    Args:
        path: the archive.
        folder: new or empty; afterwards it holds what was unpacked and what was made.

    Raises:
        ReperfError: the archive is not what its manifest says, it is not that of a suite, or
            something comes out different; the message names all that does. Nothing is written
            outside `folder`.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReperfError(f"{folder}: exists already; allowed: a new or empty folder")
    with verified(path) as archive:
        maker = _made_by(archive)
        try:
            return _rebuild(archive, path, folder, maker)
        except ReperfError as fault:
            if maker in ("", __version__):
                raise
            raise ReperfError(
                f"{fault}; reperf {maker} made the archive, and rebuilds it with the libraries in "
                f"{_pins(archive)}; this is {__version__}"
            ) from None


def _rebuild(archive: ZipFile, path: Path, folder: Path, maker: str) -> Rebuilt:
    report, cells = _read_plan(archive, path)
    runs = report.runs(report.suites[0])
    suite, held = report.suites[0].name, set(archive.namelist()) - {MANIFEST}
    needed = [*tables_of(suite), *figures_of(suite, FIRST_KINDS)]
    # Earlier versions drew less.
    results = needed + [name for name in figures_of(suite) if name in held - {*needed}]
    for name in [*(str(file) for run in runs for file in (run.log, run.record)), *needed]:
        if name not in held:
            raise ReperfError(f"{path}: is not the archive of a suite: {name} is not in it")
    explained = [name for name in (README, PAGE) if name in held]  # earlier versions had none
    for name in sorted(archive.namelist()):
        if name not in (*results, *explained):
            unpack(archive, name, folder)
    graph = _read(archive, path, METADATA, json.loads)
    with chdir(folder):
        cells = tuple(cell.with_runs(with_found_batch) for cell in cells)
        with faults_of(path):
            check_records(report, runs_of(cells), held, graph)
        make_results(report, cells)
        made = pages(report, list(records_of(runs_of(cells))))
        for name, content in made.items():
            with whole_file(name, "wb") as stream:
                stream.write(content)
    all_made, forgiven = [*results, *explained], {}
    differ = {}
    for name in all_made:
        new, old = (folder / name).read_bytes(), archive.read(name)
        if new != old:
            differ[name] = _where(name, new, old)
            if how := _earlier_form(name, new, old):
                forgiven[name] = how
    if forgiven or maker not in ("", __version__):
        forgiven |= {name: ("not as", "") for name in differ if name in made}
    elif made.keys() >= differ.keys():
        reworded = {name: _new_number(made[name], archive.read(name)) for name in differ}
        forgiven = {name: ("not as", _SAME_NUMBERS) for name, new in reworded.items() if not new}
        differ |= {name: f", which says {new}" for name, new in reworded.items() if new}
    if wrong := [f"{name}{where}" for name, where in differ.items() if name not in forgiven]:
        raise ReperfError(
            f"{path}: {len(wrong)} of {len(all_made)} files differ from those made again in "
            f"{folder}: {'; '.join(wrong)}"
        )
    if maker in ("", __version__):
        here = ("not as this reperf has it, but as", _TITLES)
        forgiven |= dict.fromkeys(_described_otherwise(held, folder), here)
    return Rebuilt([name for name in all_made if name not in differ], forgiven, maker)


def _earlier_form(name: str, made: bytes, archived: bytes) -> tuple[str, str] | None:
    """How a table or a figure says what today's does, in an earlier form; None if it does not."""
    if name.endswith(".csv") and as_earlier(made, archived) == archived:
        columns, known = (text.decode().partition("\n")[0].split(",") for text in (made, archived))
        missing = ", ".join(columns[len(known) :])
        return ("as", f" without {missing}") if columns.index(LATER) <= len(known) else None
    if name.endswith(".svg") and without_ids(made) == without_ids(archived):
        return "drawn as", " with other ids, which draw nothing"
    return None


def _new_number(made: bytes, archived: bytes) -> str:
    """A number in the tables of an archived page that is not in the one made again; "" if none."""

    def numbers(page: bytes) -> Counter[bytes]:
        return Counter(_NUMBER.findall(_TAG.sub(b" ", b"|".join(_CELL.findall(page)))))

    return next((numbers(archived) - numbers(made)).elements(), b"").decode()


def _described_otherwise(names: Iterable[str], folder: Path) -> list[str]:
    """The archived descriptions of systems and workloads that do not say what those here say."""
    return [
        name
        for name in sorted(names)
        if name.startswith(_DESCRIPTIONS) and name.endswith(".yaml") and (ROOT / name).exists()
        if read_written(ROOT / name) != read_written(folder / name)
    ]


def without_ids(figure: bytes) -> bytes:
    """An SVG without the names of its groups, which draw nothing; today's name their series."""
    return re.sub(rb'<g id="[^"]*"', b"<g", figure)


def _read_plan(archive: ZipFile, path: Path) -> tuple[Report, tuple[Cell, ...]]:
    """The configuration of an archive, and the cells that follow from it.

    Raises:
        ReperfError: the archive is not that of a suite, or its cells do not follow.
    """
    config = _read(archive, path, CONFIG, json.loads)
    report = load_report(config, f"{path}: {CONFIG}", archived=True)
    cells = _read(archive, path, CELLS, CELL_LIST.validate_json)
    if len(report.suites) != 1 or report.device == "auto":
        raise ReperfError(f"{path}: {CONFIG}: allowed: one suite, and a device other than auto")
    _check_sources(report, archive, path)
    if not cells and not report.suites[0].sources:
        raise ReperfError(f"{path}: is not the archive of a suite: {CELLS} names no cell")
    if "hardware" not in config and report.device == "cuda":  # of an earlier version
        hardware = _read(archive, path, CELLS, lambda _: hardware_in(cells))
        report = report.model_copy(update={"hardware": hardware})
    with faults_of(path):
        check_cells(report, cells)
    return report, cells


def as_earlier(made: bytes, archived: bytes) -> bytes:
    """A table as an earlier version made it: without the last columns, which it did not know."""
    columns = len(next(csv.reader(StringIO(archived.decode(errors="replace"))), []))
    text = StringIO()
    rows = csv.reader(StringIO(made.decode()))
    csv.writer(text, lineterminator="\n").writerows(row[:columns] for row in rows)
    return text.getvalue().encode()


def _where(name: str, made: bytes, archived: bytes) -> str:
    """Where two tables begin to differ, and what the new one has there; "" for other files."""
    if not name.endswith(".csv"):
        return ""
    pairs = zip_longest(made.splitlines(), archived.splitlines(), fillvalue=b"")
    number, line = next(
        (number, mine) for number, (mine, theirs) in enumerate(pairs, 1) if mine != theirs
    )
    return f" from line {number} on: {line.decode()[:200]}"


def _read(archive: ZipFile, path: Path, name: str, parse: Callable[[bytes], Content]) -> Content:
    try:
        return parse(archive.read(name))
    except (KeyError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ReperfError(f"{path}: is not the archive of a suite: {name}: {reason}") from None


def _made_by(archive: ZipFile) -> str:
    """The version of reperf that made an archive; "" if the archive does not say."""
    try:
        described = json.loads(archive.read(METADATA))["@graph"]
        found = next(entity for entity in described if entity["@id"] == REPERF)["version"]
    except (KeyError, TypeError, ValueError, RecursionError, StopIteration):
        return ""
    return found if isinstance(found, str) and len(found) < 40 else ""


def _pins(archive: ZipFile) -> str:
    """Where the exact versions are named of the libraries that an archive was made with."""
    commits = set()
    for name in archive.namelist():
        if name.startswith("results/runs/") and name.endswith(f"/{RUN_RECORD}"):
            with suppress(KeyError, TypeError, ValueError, RecursionError):
                commit = json.loads(archive.read(name))["git_commit"]
                if re.fullmatch("[0-9a-f]{40}", commit):
                    commits.add(commit)
    where = f"at commit {' or '.join(sorted(commits))}" if commits else "of that version"
    return f"requirements.txt {where}"


def _check_sources(report: Report, archive: ZipFile, path: Path) -> None:
    """Refuse a configuration that measures anything but members of its own archive.

    Raises:
        ReperfError: the message names the path.
    """
    for source in report.suites[0].sources:
        inside = source.path.as_posix()
        below = any(name == inside or name.startswith(f"{inside}/") for name in archive.namelist())
        if source.path.parent != SOURCES or not below:
            raise ReperfError(
                f"{path}: {CONFIG}: from: {inside} is no member; allowed: files below {SOURCES}/"
            )


def make_results(report: Report, cells: tuple[Cell, ...]) -> None:
    """Measure, summarise and draw in the working folder, as the workflow's rules do."""
    suite = report.suites[0]
    for table, text in measured_tables(suite, cells).items():
        with whole_file(table) as stream:
            stream.write(text)
    draw_suite(tables_of(suite.name)[1], FIGURES.format(suite=suite.name))
