"""Logs wherever they are: files, folders and archives of them, measured one after the other."""

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from typing import NamedTuple

from reperf.config import Run, Window
from reperf.errors import ReperfError
from reperf.layout import PLAN, RUN_RECORD, TRIES
from reperf.logs.checks import Refused
from reperf.logs.formats import mllog
from reperf.logs.log_file import opened
from reperf.measuring.answer import Answer, Question, refused, without_doubt
from reperf.measuring.likeness import Name, beginning, by_name, is_log
from reperf.measuring.log_archives import of_archive
from reperf.measuring.measure import Method
from reperf.measuring.one_log import of_file, read_record
from reperf.measuring.safe_archive import is_archive
from reperf.measuring.walk import files_below
from reperf.records.run_record import LARGEST_RECORD

WORTH_PROCESSES = 1 << 26
"""Bytes below which a second process takes longer to start than it saves."""


def own_run(run: Run, method: Method, plan: str | None = None) -> Answer:
    """Measure a run that reperf made in the working folder.

    Args:
        run: as the configuration plans it.
        method: how to measure.
        plan: the digest of its plan; None: of any plan.
    """
    log = run.log
    question = Question(method, mllog.FORMAT.name, digests=True, planned=run, plan=plan)
    found = _of_unit(question, _Unit(log))
    if len(found) == 1:
        return found[0]
    reason = f"{len(found)} runs are in one log; a run of ours writes one"
    return replace(refused(str(log), "plan", reason, question), digest=found[0].digest)


def answers(paths: Iterable[Path], question: Question, processes: int = 1) -> Iterator[Answer]:
    """Measure all logs in some files, folders and archives.

    Args:
        paths: folders are searched, archives are read.
        question: what is asked of each log.
        processes: how many may measure at the same time, each a file or an archive.
    """
    below = [(path, _units(path)) for path in paths]
    units = [unit for _, some in below for unit in some]
    size = sum(unit.path.stat().st_size for unit in units if unit.path.is_file())
    if processes == 1 or len(units) == 1 or size < WORTH_PROCESSES:
        yield from _of_paths(below, map(partial(_of_unit, question), units), question)
        return
    # Ctrl-C reaches these processes too: they must end without a word.
    quiet = partial(signal, SIGINT, SIG_DFL)
    with ProcessPoolExecutor(min(processes, len(units)), initializer=quiet) as pool:
        yield from _of_paths(below, pool.map(partial(_of_unit, question), units), question)


class _Unit(NamedTuple):
    """A file or archive, and what its name says; one that is asked for by name is a log."""

    path: Path
    name: Name = "sure"


def _of_paths(
    below: Iterable[tuple[Path, list[_Unit]]], found: Iterator[list[Answer]], question: Question
) -> Iterator[Answer]:
    """The answers for some paths: below each, and what was found in each unit, in that order."""
    for path, units in below:
        yield from without_doubt(str(path), islice(found, len(units)), question)


def _units(path: Path) -> list[_Unit]:
    if not path.is_dir():
        return [_Unit(path)]
    names = ((file, _name_below(path, file)) for file in files_below(path))
    return [_Unit(file, name) for file, name in names if name != "other"]


def _name_below(folder: Path, path: Path) -> Name:
    """What the name of a file in a folder says."""
    if is_archive(path):
        return "sure"
    tries = path.parent.parent
    if tries.name == TRIES and (tries.parent / RUN_RECORD).exists():
        return "other"  # the last try lies beside the record
    return by_name(path.relative_to(folder))


def files_of(path: Path) -> list[Path]:
    """The files that are read when a file or folder is measured, run records included."""
    logs = [unit.path for unit in _units(path) if unit.name != "open" or _is_log(unit.path)]
    records = sorted({log.with_name(RUN_RECORD) for log in logs if not is_archive(log)})
    read = (path for path in records if path.is_file() and path.stat().st_size <= LARGEST_RECORD)
    return [*logs, *read]


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return is_log(beginning(opened(stream)))
    except (OSError, Refused):  # without an ending it need not be one
        return False


def _of_unit(question: Question, unit: _Unit) -> list[Answer]:
    path = unit.path
    try:
        if is_archive(path):
            return of_archive(path, question)
        name = os.fsencode(path).decode(errors="replace")
        record, content = path.with_name(RUN_RECORD), None
        if record.is_file():
            with record.open("rb") as stream:
                content = read_record(stream)
        with path.open("rb") as stream:
            question = _in_planned_window(question, path)
            return of_file(unit.name, name, stream, question, content)
    except (ReperfError, OSError) as error:
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        return [] if unit.name == "open" else [refused(str(path), "unreadable", why, question)]


def _in_planned_window(question: Question, log: Path) -> Question:
    """The question, in the window of the plan beside a run of ours, if it asks for no other."""
    plan, method = log.with_name(PLAN), question.method
    if method.window or method.ends or method.widest or not plan.is_file():
        return question
    try:
        with plan.open("rb") as stream:
            first, last = json.loads(read_record(stream))["aside"]["window"]
        window = Window(warmup=first, measured=last - first)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return question  # it is another program's
    return replace(question, method=replace(method, window=window))
