"""What an archive says of itself: to people a README and a page, to programs a crate.

The metadata are a Process Run Crate: RO-Crate 1.1, one action per training run.
Source: https://w3id.org/ro/crate/1.1 and https://w3id.org/ro/wfrun/process/0.5.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path, PurePath
from string import Template
from typing import Any
from urllib.parse import quote

from reperf import __version__
from reperf.archive.by_hand import worked_example
from reperf.config import Report, Run
from reperf.layout import FIGURES, ROOT, tables_of
from reperf.member_names import CONFIG, METADATA, PAGE, README, REPERF
from reperf.records.run_record import RunRecord
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.systems import load_systems
from reperf.tables import read_measurements, read_summary
from reperf.text import printable

_README = Path(__file__).with_name("readme.txt")
_CRATE = "https://w3id.org/ro/crate/1.1"
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
_LIBRARIES = ("matplotlib", "numpy", "pandas")
# A crate must have a date; without runs, it is the earliest that a zip file can store.
_NO_DATE = "1980-01-01"


def pages(
    report: Report, records: Sequence[RunRecord], place: Callable[[str], Path] = Path
) -> dict[str, bytes]:
    """Name in the archive -> content, made from the tables and figures in the working folder.

    The published numbers of others are left out: an archive holds what was measured.

    Args:
        report: of the archived suite alone, as the archive holds it.
        place: gives the file here that is called so in the archive.
    """
    (suite,) = report.suites
    tables = tables_of(suite.name)
    measurements = read_measurements(tables[0])
    context = gather(
        report, records, measurements, read_summary(tables[1]), published=False, tables=tables
    )
    commits = context.commits
    profile = "slurm" if report.slurm else "hosts" if report.cluster else ""
    words = {
        "title": printable(f"{report.title}: {suite.name}"),
        "profile": f"--profile {profile} " if profile else "",
        "version": __version__,
        "pinned": f": the one at {commits[0].rstrip('+')}" if commits else "",
        "example": worked_example(measurements, place),
        "commits": f", its runs at commit {' and '.join(commits)}" if commits else "",
    }
    return {
        README: Template(_README.read_text(encoding="utf-8")).substitute(words).encode(),
        PAGE: render_html(context, Path(FIGURES).parent).encode(),
    }


def describe(report: Report, names: Iterable[str], records: Sequence[RunRecord]) -> dict[str, Any]:
    """The JSON-LD of an archive of some files; dates come from the run records alone."""
    (suite,) = report.suites
    files = {name: quote(name) for name in sorted(names)}
    runs = [_run(files, record) for record in records]
    crate = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{report.title}: {suite.name}",
        "description": f"Training throughput of {suite.workload} in {suite.precision}: "
        "logs, run records, configuration, tables and figures",
        "datePublished": max((record.ended for record in records), default=_NO_DATE),
        # A crate must state a licence, and the numbers belong to whoever measured them.
        "license": "Not stated: ask those who ran the benchmark",
        "conformsTo": {"@id": _PROFILE},
        "hasPart": [{"@id": file} for file in files.values()],
        "mentions": [{"@id": run["@id"]} for run in runs],
    }
    if report.reproduces:
        crate["isBasedOn"] = {"@id": f"urn:sha256:{report.reproduces}"}
    metadata = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _CRATE},
        "about": {"@id": crate["@id"]},
    }
    profile = {"@id": _PROFILE, "@type": "CreativeWork", "name": "Process Run Crate"}
    # The program that made the tables and figures, and what it needs to make them again.
    reperf = {
        "@id": REPERF,
        "@type": "SoftwareApplication",
        "name": "reperf",
        "version": __version__,
        "softwareRequirements": made_with()[1:],
    }
    trainers = {_trainer(record.run) for record in records}
    described = [_file(name, files[name], name in trainers) for name in files]
    graph = [crate, metadata, profile, *described, *runs, reperf]
    return {"@context": f"{_CRATE}/context", "@graph": graph}


def _trainer(run: Run) -> str:
    """The archived name of the program that trained."""
    return load_systems()[run.system].trainer(run.workload).relative_to(ROOT).as_posix()


def _file(name: str, identifier: str, is_trainer: bool) -> dict[str, Any]:
    path = PurePath(name)
    return {
        "@id": identifier,
        "@type": ["File", "SoftwareSourceCode"] if is_trainer else "File",
        "name": "the program that trains" if is_trainer else path.name,
        "encodingFormat": _FORMATS.get(path.suffix, "application/octet-stream"),
    }


def _run(files: Mapping[str, str], record: RunRecord) -> dict[str, Any]:
    run = record.run
    state = "CompletedActionStatus" if record.status == "ok" else "FailedActionStatus"
    action = {
        "@id": f"#{run.folder}",
        "@type": "CreateAction",
        "name": f"train {run.suite}: {run.entry} on {run.topology}, repeat {run.repeat}",
        "description": shlex.join(record.command),
        "startTime": record.started,
        "endTime": record.ended,
        "actionStatus": f"http://schema.org/{state}",
        "instrument": {"@id": files[_trainer(run)]},
        "object": {"@id": files[CONFIG]},
        "result": [{"@id": files[str(file)]} for file in (run.log, run.record)],
    }
    return action | ({"error": record.reason} if record.reason else {})


def made_with() -> list[str]:
    """What decides the bytes of tables, figures and pages: reperf and libraries, by version."""
    return [f"reperf {__version__}", *(f"{name} {version(name)}" for name in _LIBRARIES)]
