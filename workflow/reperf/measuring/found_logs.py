"""Logs wherever they are: files, folders and archives of them, measured one after the other."""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path, PurePath
from signal import SIG_DFL, SIGINT, signal
from typing import IO

from pydantic import BaseModel, Field, ValidationError

from reperf.archive.container import MANIFEST
from reperf.archive.names import CELLS, CONFIG
from reperf.config import Run, Window
from reperf.errors import ReperfError
from reperf.faults import first_fault
from reperf.layout import RUN_RECORD
from reperf.logs.facts import Fact, Facts, facts_in_path
from reperf.logs.formats import formats, mllog
from reperf.logs.recognise import NO_FORMAT
from reperf.measuring.likeness import (
    SUFFIXES,
    Continued,
    Name,
    beginning,
    by_name,
    is_log,
    reads_like_log,
)
from reperf.measuring.measure import Measurement, Method, Told, measure_log
from reperf.measuring.safe_archive import DAMAGE, ArchivedFile, is_archive, open_archive
from reperf.measuring.walk import files_below
from reperf.systems import load_workloads
from reperf.training.record import LARGEST_RECORD, RunRecord

NO_LOG = f"no log is in it; allowed: {', '.join(SUFFIXES)}, without an ending, archives"
WORTH_PROCESSES = 1 << 26
"""Bytes below which a second process takes longer to start than it saves."""


@dataclass(frozen=True)
class Question:
    """What is asked of each log.

    Attributes:
        method: how to measure.
        log_format: name of the logs' format; None: found from the content of each.
        told: facts from the command line or the configuration, and which of the two.
        told_of_runs: the same about single runs, by their number in each log; if there are any,
            only these runs are measured.
        digests: whether the SHA-256 of each log is wanted; it takes as long as measuring it.
        planned: the run that must have made the log, as the record beside it must confirm;
            None: whichever run the record names, if there is one.
        unread: whether to answer for files of no known format that need not be logs: those that
            read like logs, and all of them where nothing else was found.
    """

    method: Method
    log_format: str | None = None
    told: Told = ()
    told_of_runs: Mapping[int, Told] = field(default_factory=dict)
    digests: bool = False
    planned: Run | None = None
    unread: bool = False


@dataclass(frozen=True)
class Answer:
    """What one training run in a log gives, and what is known about it.

    Attributes:
        measured: the number, or the reason for none.
        facts: what is known, from all who say something.
        record: of the run, if one of ours lies beside the log and is what was planned.
        planned: the planned run that was asked about, if any.
        digest: SHA-256 of the log, if it was wanted.
        doubt: None for what is a log; for a file of no known format that need not be one, whether
            it reads like a log.
    """

    measured: Measurement
    facts: Facts
    record: RunRecord | None = None
    planned: Run | None = None
    digest: str = ""
    doubt: bool | None = None

    @property
    def run(self) -> Run | None:
        """The run that made the log, if it was one of ours."""
        return self.planned or (self.record and self.record.run)


def own_run(run: Run, method: Method) -> Answer:
    """Measure a run that reperf made in the working folder.

    Args:
        run: as the configuration plans it.
        method: how to measure.
    """
    log = run.log
    question = Question(method, mllog.FORMAT.name, digests=True, planned=run)
    found = _of_unit(question, _Unit(log))
    if len(found) == 1:
        return found[0]
    reason = f"{len(found)} runs are in one log; a run of ours writes one"
    return replace(_refused(str(log), reason, question), digest=found[0].digest)


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
    quiet = {"initializer": signal, "initargs": (SIGINT, SIG_DFL)}
    with ProcessPoolExecutor(min(processes, len(units)), **quiet) as pool:
        yield from _of_paths(below, pool.map(partial(_of_unit, question), units), question)


@dataclass(frozen=True)
class _Unit:
    """A file or archive, and what its name says; one that is asked for by name is a log."""

    path: Path
    name: Name = "sure"


def _of_paths(
    below: Iterable[tuple[Path, list[_Unit]]], found: Iterator[list[Answer]], question: Question
) -> Iterator[Answer]:
    """The answers for some paths: below each, and what was found in each unit, in that order."""
    for path, units in below:
        yield from _without_doubt(str(path), islice(found, len(units)), question)


def _without_doubt(
    name: str, found: Iterable[list[Answer]], question: Question
) -> Iterator[Answer]:
    """What is said of a folder or archive: of the doubtful files at its end, and not of all."""
    doubtful, nothing = [], True
    for answer in chain.from_iterable(found):
        if answer.doubt is None:
            nothing = False
            yield answer
        else:
            doubtful.append(answer)
    if question.unread:
        listed = [answer for answer in doubtful if answer.doubt or nothing]
        nothing = nothing and not listed
        yield from listed
    if nothing:
        yield _refused(name, NO_LOG, question)


def _units(path: Path) -> list[_Unit]:
    if not path.is_dir():
        return [_Unit(path)]
    found = ((one, _name_below(path, one)) for one in files_below(path, lambda _: True))
    return [_Unit(one, name) for one, name in found if name != "other"]


def _name_below(folder: Path, path: Path) -> Name:
    """What the name of a file in a folder says."""
    if is_archive(path):
        return "sure"
    tries = path.parent.parent
    if tries.name == "tries" and (tries.parent / RUN_RECORD).exists():
        return "other"  # the last try lies beside the record
    return by_name(path.relative_to(folder))


def files_of(path: Path) -> list[Path]:
    """The files that are read when a file or folder is measured, run records included."""
    logs = [unit.path for unit in _units(path) if unit.name != "open" or _is_log(unit.path)]
    records = {log.with_name(RUN_RECORD) for log in logs if not is_archive(log)}
    return [*logs, *sorted(filter(_is_read, records))]


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return is_log(beginning(stream))
    except OSError:  # without an ending it need not be one
        return False


def _is_read(record: Path) -> bool:
    return record.is_file() and record.stat().st_size <= LARGEST_RECORD


def _of_unit(question: Question, unit: _Unit) -> list[Answer]:
    path = unit.path
    try:
        if is_archive(path):
            return _of_archive(path, question)
        name = os.fsencode(path).decode(errors="replace")
        content = _content_of(path.with_name(RUN_RECORD))
        with path.open("rb") as stream:
            return _of_file(unit.name, name, stream, question, content)
    except (ReperfError, OSError) as error:
        return [] if unit.name == "open" else [_refused(str(path), str(error), question)]


def _of_file(
    likeness: Name, name: str, stream: IO[bytes], question: Question, record: bytes | None
) -> list[Answer]:
    """Measure a file that is a log, or may be one.

    Args:
        likeness: what its name says.
        name: of the file.
        stream: its bytes.
        question: what is asked of it.
        record: the content of the run.json beside it; None if there is none.
    """
    if likeness == "sure":
        return _of_stream(name, stream, question, record)
    head = beginning(stream)
    if likeness == "open" and not is_log(head):
        return []
    found = _of_stream(name, Continued(head, stream), question, record)
    if all(one.measured.reason != NO_FORMAT for one in found):
        return found
    return [replace(one, doubt=reads_like_log(head)) for one in found]


def _content_of(record: Path) -> bytes | None:
    if not record.is_file():
        return None
    with record.open("rb") as stream:
        return _read_record(stream)


def _read_record(stream: IO[bytes]) -> bytes:
    """As much of a file as a run record may hold, and one byte more if there is more."""
    content = b""
    while chunk := stream.read(LARGEST_RECORD + 1 - len(content)):
        content += chunk
    return content


def _of_archive(path: Path, question: Question) -> list[Answer]:
    with open_archive(path) as files:
        inside = {file.name for file in files}
        names = {file.name: _name_inside(file.name, inside) for file in files}
        logs = [file for file in files if names[file.name] != "other"]
        recorded = {} if question.method.window else _recorded(files)
        records = _records_beside(logs, files)
        found = []
        for file in logs:
            name, record = f"{path}/{file.name}", records.get(_beside(file.name))
            likeness = names[file.name]
            try:
                with file.open() as stream:
                    asked = _as_recorded(question, recorded, file.name)
                    found.append(_of_file(likeness, name, stream, asked, record))
            except (OSError, *DAMAGE) as error:
                found.append([_refused(name, f"damaged in the archive: {error}", question)])
    return list(_without_doubt(str(path), found, question))


def _recorded(files: list[ArchivedFile]) -> dict[str, tuple[Window, str | None]]:
    """How an archive of ours was measured: beginning of a log's name -> window and unit.

    Nothing else of its configuration is read: another version's may hold what this one does not
    know.

    Raises:
        ReperfError: it seems to be one of ours, but its configuration is not valid.
    """
    members = {file.name: file for file in files}
    if not {CONFIG, CELLS, MANIFEST} <= members.keys():
        return {}
    try:
        with members[CONFIG].open() as stream:
            report = _OfReport.model_validate_json(_read_record(stream))
    except ValidationError as error:
        fault = first_fault(error, _OfReport, {})
        raise ReperfError(f"{CONFIG}: is no configuration: {fault}") from None
    except (OSError, *DAMAGE) as error:
        raise ReperfError(f"{CONFIG}: is no configuration: {error}") from None
    found = {}
    for suite in report.suites:
        usual = suite.window or report.window
        found[f"results/runs/{suite.name}/"] = usual, suite.unit
        for source in suite.sources:
            found[source.path] = source.window or usual, suite.unit
    return found


class _OfSource(BaseModel):
    path: str
    window: Window | None = None


class _OfSuite(BaseModel):
    """Before reperf 0.3 no suite had a window or a unit of its own."""

    name: str
    window: Window | None = None
    unit: str | None = None
    sources: tuple[_OfSource, ...] = Field((), alias="from")


class _OfReport(BaseModel):
    """What the configuration in an archive says about how it was measured."""

    window: Window
    suites: tuple[_OfSuite, ...]


def _as_recorded(
    question: Question, recorded: Mapping[str, tuple[Window, str | None]], name: str
) -> Question:
    method = question.method
    for root, (window, unit) in recorded.items():
        if name.startswith(root):
            method = replace(method, window=window, unit=method.unit or unit)
            return replace(question, method=method)
    return question


def _name_inside(name: str, inside: set[str]) -> Name:
    """What the name of a file in an archive says."""
    path = PurePath(name)
    if path.parent.parent.name == "tries" and str(path.parents[2] / RUN_RECORD) in inside:
        return "other"
    return by_name(path)


def _beside(name: str) -> str:
    return str(PurePath(name).with_name(RUN_RECORD))


def _records_beside(logs: list[ArchivedFile], files: list[ArchivedFile]) -> Mapping[str, bytes]:
    wanted = {_beside(log.name) for log in logs}
    records = {}
    for file in files:
        if file.name in wanted:
            try:
                with file.open() as stream:
                    records[file.name] = _read_record(stream)
            except (OSError, *DAMAGE) as error:
                raise ReperfError(f"{file.name}: damaged in the archive: {error}") from None
    return records


class _Hashing:
    """A stream that computes the SHA-256 of what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = sha256()

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._digest.update(chunk)
        return chunk

    def digest(self) -> str:
        """The digest of the whole stream; reads the rest first."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()


def _of_stream(
    name: str, stream: IO[bytes], question: Question, content: bytes | None
) -> list[Answer]:
    """Measure one log.

    Args:
        name: of the log.
        stream: its bytes.
        question: what is asked of it.
        content: of the run.json beside it; None if there is none.
    """
    record, hashing = None, _Hashing(stream)
    try:
        record = _record_beside(name, content, question.planned)
        hashed = question.digests or record is not None
        found = _measured(name, hashing if hashed else stream, question, record)
    except ReperfError as error:
        found = [_refused(name, str(error), question)]
    if record is None and not question.digests:
        return found
    digest = hashing.digest()
    if record is not None and record.status == "ok" and digest != record.log_sha256:
        reason = "the log has changed since its run record was written"
        found = [_refused(name, reason, question, record)]
    return [replace(one, digest=digest) for one in found]


def _measured(
    name: str, stream: IO[bytes], question: Question, record: RunRecord | None
) -> list[Answer]:
    if record is not None and record.status != "ok":
        reason = f"the run ended as {record.status}: {record.reason}"
        measured = Measurement(name, mllog.FORMAT.name, "refused", reason, method="")
        return [Answer(measured, Facts(), record, question.planned)]
    told = [("the run record", facts_of_run(record.run))] if record else []
    told.append(("the path", facts_in_path(name)))
    of_runs = {number: [*told, *facts] for number, facts in question.told_of_runs.items()}
    told += question.told
    chosen = question.log_format or (mllog.FORMAT.name if record else None)
    log_format = formats()[chosen] if chosen else None
    return [
        Answer(measured, facts, record, question.planned)
        for measured, facts in measure_log(
            name, stream, question.method, log_format, told, told_of_runs=of_runs
        )
    ]


def facts_of_run(run: Run) -> list[Fact]:
    """The facts that a run's configuration says about its log."""
    return [
        ("workload", run.workload),
        ("parameters", load_workloads()[run.workload].parameters_of(run.shape)),
        ("precision", run.precision),
        *run.shape.items(),
        ("batch_size", run.batch_size),
        ("replicas", run.stages[0] if run.stages else None),
        ("nodes", run.nodes),
        ("devices_per_node", run.devices_per_node),
    ]


def _record_beside(name: str, content: bytes | None, planned: Run | None) -> RunRecord | None:
    """The run record beside a log, if the file there is one of ours.

    Raises:
        ReperfError: it claims to be one, but is not; or it belongs to another run than planned.
    """
    if planned is None and (content is None or not _may_be_record(content)):
        return None
    if content is None:
        raise ReperfError(f"{_beside(name)}: not there; a run leaves one beside its log")
    record = RunRecord.parse(content, _beside(name))
    if planned is not None and (differences := record.run.differences(planned)):
        raise ReperfError(f"the run is not the one that is asked for: {differences}")
    return record


def _may_be_record(content: bytes) -> bool:
    return len(content) <= LARGEST_RECORD and b'"record_version"' in content


def _refused(name: str, reason: str, question: Question, record: RunRecord | None = None) -> Answer:
    chosen = mllog.FORMAT.name if record or question.planned else None
    measured = Measurement(name, chosen, "refused", reason, method=question.method.name)
    return Answer(measured, Facts(), record, question.planned)
