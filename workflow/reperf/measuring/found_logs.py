"""Logs wherever they lie: files, folders and archives of them, measured one after the other."""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePath
from typing import IO

from pydantic import ValidationError

from reperf.errors import ReperfError
from reperf.facts import Facts, facts_in_path
from reperf.faults import first_fault
from reperf.logs import NO_FORMAT, formats, mllog
from reperf.measuring.measure import Measurement, Method, Sources, measure_log
from reperf.measuring.own_runs import facts_of_run
from reperf.measuring.safe_archive import DAMAGE, ArchivedFile, is_archive, open_archive
from reperf.records import RunRecord

SUFFIXES = (".log", ".txt", ".out", ".err")
"""Names under which a log in a folder or archive is looked for."""
SURE_SUFFIX = ".log"
"""A file of this name is a log; of another one, only if it holds lines of a known format."""
RECORD = "run.json"
LARGEST_RECORD = 1 << 24
WORTH_PROCESSES = 1 << 26
"""Bytes below which a second process takes longer to start than to help."""


@dataclass(frozen=True)
class Question:
    """What is asked of each log.

    Attributes:
        method: how to measure.
        log_format: name of the logs' format; None: found from the content of each.
        told: facts from the command line or the configuration, and which of the two.
        digests: whether the SHA-256 of each log is wanted; it takes as long as measuring it.
    """

    method: Method
    log_format: str | None = None
    told: Sources = ()
    digests: bool = False


@dataclass(frozen=True)
class Answer:
    """What one training run in a log gives, and what is known about it.

    Attributes:
        measured: the number, or the reason for none.
        facts: from all who say something.
        record: of the run, where one of ours lies beside the log.
        digest: SHA-256 of the log, if it was wanted.
    """

    measured: Measurement
    facts: Facts
    record: RunRecord | None
    digest: str = ""


def answers(paths: Iterable[Path], question: Question, processes: int = 1) -> Iterator[Answer]:
    """Measure all logs in some files, folders and archives.

    Args:
        paths: folders are searched, archives are read.
        question: what is asked of each log.
        processes: how many may measure at a time, each a file or an archive.
    """
    units = [unit for path in paths for unit in _units(path)]
    size = sum(unit.path.stat().st_size for unit in units if unit.path.is_file())
    if processes == 1 or len(units) == 1 or size < WORTH_PROCESSES:
        yield from (answer for unit in units for answer in _of_unit(question, unit))
        return
    with ProcessPoolExecutor(min(processes, len(units))) as pool:
        for found in pool.map(partial(_of_unit, question), units):
            yield from found


@dataclass(frozen=True)
class _Unit:
    """A file or archive; `sure` if it must have something to say."""

    path: Path
    sure: bool


def _units(path: Path) -> list[_Unit]:
    if not path.is_dir():
        return [_Unit(path, sure=True)]
    found = [
        _Unit(one, sure=is_archive(one) or one.suffix == SURE_SUFFIX)
        for one in sorted(path.rglob("*"))
        if one.is_file() and _is_looked_at(one)
    ]
    return found or [_Unit(path, sure=True)]


def files_of(path: Path) -> list[Path]:
    """The files that are read when a file or folder is measured, run records included."""
    logs = [unit.path for unit in _units(path)]
    records = {log.with_name(RECORD) for log in logs if not is_archive(log)}
    return [*logs, *sorted(record for record in records if record.is_file())]


def _is_looked_at(path: Path) -> bool:
    if path.suffix in SUFFIXES and path.parent.parent.name == "tries":
        return not (path.parents[2] / RECORD).exists()  # the last try lies beside the record
    return path.suffix in SUFFIXES or is_archive(path)


def _of_unit(question: Question, unit: _Unit) -> list[Answer]:
    path = unit.path
    try:
        if path.is_dir():
            raise ReperfError(f"{path}: no log is in it; allowed: {', '.join(SUFFIXES)}, archives")
        if is_archive(path):
            return _of_archive(path, question)
        name = os.fsencode(path).decode(errors="replace")
        record = path.with_name(RECORD)
        content = record.read_bytes() if record.is_file() else None
        with path.open("rb") as stream:
            found = _of_stream(name, stream, question, content)
    except (ReperfError, OSError) as error:
        return [_refused(str(path), str(error), question)]
    return found if unit.sure else _speaking(found)


def _of_archive(path: Path, question: Question) -> list[Answer]:
    with open_archive(path) as files:
        inside = {file.name for file in files}
        logs = [file for file in files if _is_looked_at_inside(file.name, inside)]
        records = _records_beside(logs, files)
        found = []
        for file in logs:
            name, record = f"{path}/{file.name}", records.get(_beside(file.name))
            try:
                with file.open() as stream:
                    answered = _of_stream(name, stream, question, record)
            except (OSError, *DAMAGE) as error:
                answered = [_refused(name, f"damaged in the archive: {error}", question)]
            found += answered if file.name.endswith(SURE_SUFFIX) else _speaking(answered)
    return found or [_refused(str(path), "no log is in it", question)]


def _is_looked_at_inside(name: str, inside: set[str]) -> bool:
    path = PurePath(name)
    if path.parent.parent.name == "tries" and str(path.parents[2] / RECORD) in inside:
        return False
    return path.suffix in SUFFIXES


def _beside(name: str) -> str:
    return str(PurePath(name).with_name(RECORD))


def _records_beside(logs: list[ArchivedFile], files: list[ArchivedFile]) -> Mapping[str, bytes]:
    wanted = {_beside(log.name) for log in logs}
    records = {}
    for file in files:
        if file.name in wanted and file.size <= LARGEST_RECORD:
            try:
                with file.open() as stream:
                    records[file.name] = b"".join(iter(partial(stream.read, 1 << 20), b""))
            except (OSError, *DAMAGE) as error:
                raise ReperfError(f"{file.name}: damaged in the archive: {error}") from None
    return records


class _Hashing:
    """A stream that makes the SHA-256 of what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = sha256()

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._digest.update(chunk)
        return chunk

    def digest(self) -> str:
        """Of the whole stream, whose rest is read first."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()


def _of_stream(
    name: str, stream: IO[bytes], question: Question, content: bytes | None
) -> list[Answer]:
    """Measure one log, beside which a run record may lie."""
    if question.digests:
        hashing = _Hashing(stream)
        found = _of_stream(name, hashing, replace(question, digests=False), content)
        digest = hashing.digest()
        return [replace(one, digest=digest) for one in found]
    try:
        record = _read_record(name, content)
    except ReperfError as error:
        return [_refused(name, str(error), question)]
    if record is not None and record.status != "ok":
        reason = f"the run ended as {record.status}: {record.reason}"
        return [replace(_refused(name, reason, question), record=record)]
    told = [("the run record", facts_of_run(record.run))] if record else []
    told += [("the path", facts_in_path(name)), *question.told]
    chosen = question.log_format or (mllog.FORMAT.name if record else None)
    log_format = formats()[chosen] if chosen else None
    return [
        Answer(measured, facts, record)
        for measured, facts in measure_log(name, stream, question.method, log_format, told)
    ]


def _read_record(name: str, content: bytes | None) -> RunRecord | None:
    """The run record beside a log, if what lies there is one of ours.

    Raises:
        ReperfError: it says that it is, but is not.
    """
    if content is None or b'"record_version"' not in content:
        return None
    try:
        return RunRecord.model_validate_json(content)
    except ValidationError as error:
        fault = first_fault(error, RunRecord, {})
        raise ReperfError(f"{_beside(name)}: not a run record: {fault}") from None


def _refused(name: str, reason: str, question: Question) -> Answer:
    measured = Measurement(name, None, "refused", reason, method=question.method.name)
    return Answer(measured, Facts(), None)


def _speaking(found: list[Answer]) -> list[Answer]:
    """The answers of a file that need not be a log: none if it holds no known line."""
    return [one for one in found if one.measured.reason != NO_FORMAT]
