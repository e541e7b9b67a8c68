"""What an archive says of itself: to people a README and a page, to programs a crate.

The metadata are a Process Run Crate: RO-Crate 1.1, one action per training run.
Source: https://w3id.org/ro/crate/1.1 and https://w3id.org/ro/wfrun/process/0.5.
"""

import shlex
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path, PurePath
from string import Template
from typing import Any

from rocrate.model import ContextEntity, File
from rocrate.rocrate import ROCrate

from reperf import __version__
from reperf.config import Report, Run
from reperf.layout import FIGURES, tables_of
from reperf.member_names import CONFIG, PAGE, README, REPERF
from reperf.records.run_record import RunRecord
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.systems import ROOT, load_systems
from reperf.tables import read_measurements, read_summary
from reperf.text import printable

_README = Path(__file__).with_name("readme.txt")
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
# Stated here, because each operating system has its own table of types.
_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".log": "text/plain",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
}
_LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy")
# A crate must have a date; without runs, it is the earliest that a zip file can store.
_NO_DATE = "1980-01-01"


def pages(report: Report, records: Sequence[RunRecord]) -> dict[str, bytes]:
    """Name in the archive -> content, made from the tables and figures in the working folder.

    The published numbers of others are left out: an archive holds what was measured.

    Args:
        report: of the archived suite alone, as the archive holds it.
        records: of the suite's runs.
    """
    (suite,) = report.suites
    tables = tables_of(suite.name)
    context = gather(
        report,
        records,
        read_measurements(tables[0]),
        read_summary(tables[1]),
        published=False,
        tables=tables,
    )
    commits = context.commits
    told = {
        "title": printable(f"{report.title}: {suite.name}"),
        "profile": "--profile slurm " if report.cluster else "",
        "version": __version__,
        "pinned": f": the one at {commits[0].rstrip('+')}" if commits else "",
        "commits": f", its runs at commit {' and '.join(commits)}" if commits else "",
    }
    return {
        README: Template(_README.read_text(encoding="utf-8")).substitute(told).encode(),
        PAGE: render_html(context, Path(FIGURES).parent).encode(),
    }


def describe(report: Report, names: Iterable[str], records: Sequence[RunRecord]) -> dict[str, Any]:
    """The JSON-LD that describes an archive; dates come from the run records alone.

    Args:
        report: of the archived suite alone.
        names: the archive's files.
        records: of the suite's runs.
    """
    (suite,) = report.suites
    crate = ROCrate(version="1.1")
    crate.root_dataset["datePublished"] = max((r.ended for r in records), default=_NO_DATE)
    crate.root_dataset["name"] = f"{report.title}: {suite.name}"
    crate.root_dataset["description"] = (
        f"Training throughput of {suite.workload} in {suite.precision}: "
        "logs, run records, configuration, tables and figures"
    )
    # A crate must state a licence, and the numbers belong to whoever measured them.
    crate.root_dataset["license"] = "Not stated: ask those who ran the benchmark"
    crate.root_dataset["conformsTo"] = crate.add(
        ContextEntity(crate, _PROFILE, {"@type": "CreativeWork", "name": "Process Run Crate"})
    )
    trainers = {_trainer(record.run) for record in records}
    files = {name: _add_file(crate, name, name in trainers) for name in sorted(names)}
    crate.root_dataset["mentions"] = [_add_run(crate, files, record) for record in records]
    # The program that made the tables and figures, and what it needs to make them again.
    reperf = {
        "@type": "SoftwareApplication",
        "name": "reperf",
        "version": __version__,
        "softwareRequirements": made_with()[1:],
    }
    crate.add(ContextEntity(crate, REPERF, reperf))
    return crate.metadata.generate()


def _trainer(run: Run) -> str:
    """The archived name of the program that trained."""
    return load_systems()[run.system].trainer(run.workload).relative_to(ROOT).as_posix()


def _add_file(crate: ROCrate, name: str, is_trainer: bool) -> File:
    path = PurePath(name)
    properties: dict[str, str | list[str]] = {
        "name": path.name,
        "encodingFormat": _FORMATS.get(path.suffix, "application/octet-stream"),
    }
    if is_trainer:
        properties["@type"] = ["File", "SoftwareSourceCode"]
        properties["name"] = "the program that trains"
    return crate.add_file(dest_path=name, properties=properties)


def _add_run(crate: ROCrate, files: dict[str, File], record: RunRecord) -> ContextEntity:
    run = record.run
    state = "CompletedActionStatus" if record.status == "ok" else "FailedActionStatus"
    properties = {
        "name": f"train {run.suite}: {run.entry} on {run.topology}, repeat {run.repeat}",
        "description": shlex.join(record.command),
        "startTime": record.started,
        "endTime": record.ended,
        "actionStatus": f"http://schema.org/{state}",
    }
    if record.reason:
        properties["error"] = record.reason
    return crate.add_action(
        instrument=files[_trainer(run)],
        identifier=f"#{run.folder}",
        object=files[CONFIG],
        result=[files[str(run.log)], files[str(run.record)]],
        properties=properties,
    )


def made_with() -> list[str]:
    """What decides the bytes of tables, figures and pages: reperf and libraries, by version."""
    return [f"reperf {__version__}", *(f"{name} {version(name)}" for name in _LIBRARIES)]
