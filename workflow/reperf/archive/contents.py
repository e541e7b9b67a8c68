"""What the archive of a suite holds.

Files keep their paths in the working folder, so that an unpacked archive is a working folder:

    results/runs/<suite>/...      the log and the record of every run, and of every try
    results/largest/...           the trials that found the largest batches, and what they found
    results/suites/<suite>/*.csv  the two tables
    figures/<suite>-*             the figures
    from/                         the archives, folders and logs that were measured beside its runs
    workflow/, envs/              the trainers that ran, the workloads' descriptions, and the locks
                                  of the environments
    README.txt, report.html       see reperf.archive.descriptions
    check.csv                     the division of each run, see reperf.archive.by_hand
    config.json                   a configuration that asks for this suite alone
    cells.json                    the cells that it asks for, and why some cannot run
    ro-crate-metadata.json        see reperf.archive.descriptions
    manifest-sha256.txt           see reperf.archive.container
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from reperf.archive.container import Member, write
from reperf.config import Cell, Report, Run, Suite
from reperf.layout import BATCH_FOLDERS, BATCH_RECORD, PLAN, RUN_FILES, figures_of, tables_of
from reperf.measuring.found_logs import files_of
from reperf.member_names import CELLS, CHECK, CONFIG, METADATA, SOURCES
from reperf.plans.plan_files import training_files
from reperf.records.run_record import RunRecord, records_of

CELL_LIST = TypeAdapter(tuple[Cell, ...])
LEFT = (*RUN_FILES, PLAN, BATCH_RECORD)
"""The files that runs, their tries and searches for batches leave in their folders."""


def write_archive(report: Report, runs: list[Run], path: Path) -> None:
    """Archive a suite out of the working folder.

    Args:
        report: of this suite alone.
        runs: its own, with known batch sizes.
    """
    from reperf.archive.by_hand import check_table  # noqa: PLC0415 - a second of libraries
    from reperf.archive.descriptions import describe, pages  # noqa: PLC0415
    from reperf.tables import read_measurements  # noqa: PLC0415

    (suite,) = report.suites
    figures = figures_of(suite.name, report.figure_kinds(suite))
    records = list(records_of(runs))
    files = _files_left(runs, records) | _files_of_sources(suite) | training_files(runs)
    files |= {name: Path(name) for name in (*tables_of(suite.name), *figures)}
    texts = {
        CONFIG: config_of(report),
        CELLS: _json(CELL_LIST.dump_python(tuple(report.cells(suite)), mode="json")),
        CHECK: check_table(read_measurements(tables_of(suite.name)[0])).encode(),
    }
    texts |= pages(_with_sources_inside(report), records, lambda name: files.get(name, Path(name)))
    texts[METADATA] = _json(describe(report, [*files, *texts], records))
    members = [Member.of_file(name, file) for name, file in files.items()]
    write(path, members + [Member.of_bytes(name, text) for name, text in texts.items()])


def config_of(report: Report) -> bytes:
    """What the archive of a report's only suite holds as its configuration."""
    return _json(_with_sources_inside(report).model_dump(mode="json", by_alias=True))


def _files_left(runs: list[Run], records: list[RunRecord]) -> dict[str, Path]:
    """Archived name -> file: all that runs and searches for batches left, earlier tries too."""
    tried = (
        Path(trial.log) for record in records if record.largest for trial in record.largest.trials
    )
    # results/largest/<entry>/<digest>/trials/<n>/train.log
    searches = {log.parents[2] for log in tried if log.parts[:2] == BATCH_FOLDERS.parts}
    folders = (*(run.folder for run in runs), *sorted(searches))
    left = (file for folder in folders for file in folder.rglob("*") if file.name in LEFT)
    return {file.as_posix(): file for file in left}


def _files_of_sources(suite: Suite) -> dict[str, Path]:
    """Archived name -> file: the logs that others made."""
    return {
        (SOURCES / file.relative_to(source.path.parent)).as_posix(): file
        for source in suite.sources
        for file in files_of(source.path)
    }


def _with_sources_inside(report: Report) -> Report:
    """The report as an unpacked archive needs it, with the logs of others at their place there."""
    (suite,) = report.suites
    sources = tuple(
        source.model_copy(update={"path": SOURCES / source.id}) for source in suite.sources
    )
    suite = suite.model_copy(update={"sources": sources})
    return report.model_copy(update={"suites": (suite,)})


def _json(content: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
