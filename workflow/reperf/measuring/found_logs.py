"""Logs wherever they are: files, folders and archives of them, measured one after the other."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import file_digest
from itertools import chain, islice
from pathlib import Path, PurePath
from signal import SIG_DFL, SIGINT, signal
from typing import IO, NamedTuple

from reperf.config import Run, Window
from reperf.config.suite import shown_variant
from reperf.errors import ReperfError
from reperf.layout import PLAN, RUN_RECORD, TRIES
from reperf.logs.checks import Refused
from reperf.logs.configured import facts_of_configuration
from reperf.logs.facts import Fact, Facts, facts_in_path
from reperf.logs.formats import formats, mllog
from reperf.logs.log_file import LogFile, opened
from reperf.logs.recognise import NOT_READ
from reperf.logs.user_pattern import format_of
from reperf.measuring.archives import DAMAGE, ArchivedFile, is_archive, open_archive
from reperf.measuring.log_detection import (
    SUFFIXES,
    FileClass,
    beginning,
    class_of,
    files_below,
    is_log,
    reads_like_log,
)
from reperf.measuring.measure import Fingerprint, Measurement, Method, Sources, measure_log
from reperf.measuring.variants import NO_VARIANT, facts_of_system
from reperf.member_names import CELLS, CONFIG, MANIFEST, README
from reperf.records.run_record import LARGEST_RECORD, RunRecord
from reperf.systems.workloads import load_workloads
from reperf.text import natural_sort_key

WORTH_PROCESSES = 1 << 26  # bytes below which a second process takes longer to start than it saves
NESTED = "it is an archive in an archive, which is not read; unpack the outer one first"
NO_LOG = f"no log is in it; allowed: {', '.join(SUFFIXES)}, without an ending, archives"


@dataclass(frozen=True)
class MeasureRequest:
    """What is asked of each log."""

    method: Method
    log_format: str | None = None  # name of the logs' format; None: found from the content of each
    # a regular expression of the logs' records, as reperf.logs.user_pattern reads it, instead of a
    # format
    pattern: str | None = None
    facts: Sources = ()  # facts from the command line or the configuration, and which of the two
    # the same about single runs, by their number in each log; if there are any, only these runs are
    # measured
    facts_of_runs: Mapping[int, Sources] = field(default_factory=dict)
    # whether the SHA-256 of each log is wanted; it takes as long as measuring it
    digests: bool = False
    # the run that must have made the log, as the record beside it must confirm; None: whichever run
    # the record names, if there is one
    planned: Run | None = None
    plan: str | None = None  # the digest of its plan, which the record must name; None: of any plan
    # whether to list files of no known format that need not be logs, but read like logs
    include_unrecognised: bool = False


@dataclass(frozen=True)
class RunResult:
    """What one training run in a log gives, and what is known about it."""

    measured: Measurement  # the number, or the reason for none
    facts: Facts  # what is known, from all sources
    # of the run, if one of ours lies beside the log and is what was planned
    record: RunRecord | None = None
    planned: Run | None = None  # the planned run that was asked about, if any
    digest: str = ""  # SHA-256 of the log, if it was wanted
    unrecognised: bool = False  # whether the file is of no known format, and only reads like a log
    # what distinguishes the run from others; None if nothing was measured
    fingerprint: Fingerprint | None = None

    @property
    def run(self) -> Run | None:
        """The run that made the log, if it was one of ours."""
        return self.planned or (self.record.run if self.record else None)


class _Unit(NamedTuple):
    """A file or archive, and what its name says; one that is asked for by name is a log."""

    path: Path
    kind: FileClass = "sure"


def own_run(
    run: Run, method: Method, plan: str | None = None, log: Path | None = None
) -> RunResult:
    """Measure a run that reperf made in the working folder.

    Args:
        plan: the digest of its plan; None: of any plan.
        log: its log, if that is not in the run's folder.
    """
    request = MeasureRequest(method, mllog.FORMAT.name, digests=True, planned=run, plan=plan)
    [result] = _of_unit(request, _Unit(log or run.log))
    return result


def measure_paths(
    paths: Iterable[Path], request: MeasureRequest, processes: int = 1
) -> Iterator[RunResult]:
    """Measure all logs in some files, folders and archives.

    Args:
        paths: folders are searched, archives are read.
        processes: how many may measure at the same time, each a file or an archive.

    Yields:
        What each run gives, in the order of the paths and of the names below them.

    Examples:
        >>> log = Path("tests/data/logs/oneflow_resnet50_2n8g_b128_fp32.log")
        >>> [result] = measure_paths([log], MeasureRequest(Method()))
        >>> round(result.measured.throughput, 2), result.measured.unit
        (5915.65, 'images/s')
    """
    below = [(path, _units(path)) for path in paths]
    units = [unit for _, some in below for unit in some]
    size = sum(unit.path.stat().st_size for unit in units if unit.path.is_file())
    if processes == 1 or len(units) == 1 or size < WORTH_PROCESSES:
        yield from _of_paths(below, map(partial(_of_unit, request), units), request)
        return
    # Ctrl-C reaches these processes too: they must end without a word.
    quiet = partial(signal, SIGINT, SIG_DFL)
    with ProcessPoolExecutor(min(processes, len(units)), initializer=quiet) as pool:
        yield from _of_paths(below, pool.map(partial(_of_unit, request), units), request)


def _of_paths(
    below: Iterable[tuple[Path, list[_Unit]]],
    results: Iterator[list[RunResult]],
    request: MeasureRequest,
) -> Iterator[RunResult]:
    """The results for some paths, from those of the units below each, in that order."""
    for path, units in below:
        yield from _drop_non_logs(str(path), islice(results, len(units)), request)


def _units(path: Path) -> list[_Unit]:
    if not path.is_dir():
        return [_Unit(path)]
    classes = (
        (file, _class_inside(file.relative_to(path), lambda name: (path / name).exists()))
        for file in files_below(path)
    )
    return [_Unit(file, kind) for file, kind in classes if kind != "other"]


def _class_inside(path: PurePath, exists: Callable[[PurePath], bool]) -> FileClass:
    """What the name of a file says, from a folder or an archive on in which others may exist."""
    tries = path.parent.parent
    if tries.name == TRIES and exists(tries.parent / RUN_RECORD):
        return "other"  # the last try lies beside the record
    if path.name == README:
        return "other"  # that of an archive quotes a log
    hidden = any(part.startswith(".") for part in path.parts)
    return "sure" if is_archive(path) and not hidden else class_of(path)


def files_of(path: Path) -> list[Path]:
    """The files that are read when a file or folder is measured, run records included."""
    logs = [unit.path for unit in _units(path) if unit.kind != "open" or _is_log(unit.path)]
    records = sorted({log.with_name(RUN_RECORD) for log in logs if not is_archive(log)})
    read = (path for path in records if path.is_file() and path.stat().st_size <= LARGEST_RECORD)
    return [*logs, *read]


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return is_log(beginning(opened(stream)))
    except (OSError, Refused):  # without an ending it need not be one
        return False


def _of_unit(request: MeasureRequest, unit: _Unit) -> list[RunResult]:
    path = unit.path
    try:
        if is_archive(path):
            with open_archive(path) as files:
                results = _of_archived(path, files, request)
                return list(_drop_non_logs(str(path), results, request))
        name = os.fsencode(path).decode(errors="replace")
        record, plan = (_content(path.with_name(file)) for file in (RUN_RECORD, PLAN))
        request = _in_planned_window(request, plan)
        with path.open("rb") as stream:
            return _of_file(unit.kind, name, stream, request, record)
    except (ReperfError, OSError) as error:
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        return [] if unit.kind == "open" else [_refused(str(path), "unreadable", why, request)]


def _content(file: Path) -> bytes | None:
    """As much as a run record may hold, and one byte more if there is more; None: no file."""
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        return stream.read(LARGEST_RECORD + 1)


def _in_planned_window(request: MeasureRequest, plan: bytes | None) -> MeasureRequest:
    """The request, in the window of the plan beside a run of ours, if it asks for no other."""
    method = request.method
    if plan is None or method.window or method.ends or method.widest:
        return request
    try:
        first, last = json.loads(plan)["aside"]["window"]
        window = Window(warmup=first, measured=last - first)
    except (ValueError, KeyError, TypeError, RecursionError):
        return request  # it is another program's
    return replace(request, method=replace(method, window=window))


def _of_archived(
    path: Path, files: list[ArchivedFile], request: MeasureRequest
) -> list[list[RunResult]]:
    """What an archive's files give, in the natural order of their names."""
    inside = {file.name: file for file in files}
    recorded = {} if request.method.window else _recorded(inside)
    classes = (
        (file, _class_inside(PurePath(file.name), lambda name: str(name) in inside))
        for file in files
    )
    logs = [(file, kind) for file, kind in classes if kind != "other"]
    beside = {_record_beside(file.name) for file, _ in logs}
    records = {file.name: _read(file) for file in files if file.name in beside}
    results = []
    for file, kind in logs:
        name, asked = f"{path}/{file.name}", request
        if is_archive(PurePath(file.name)):
            results.append([_refused(name, "unreadable", NESTED, request)])
            continue
        for root, (window, unit) in recorded.items():
            if file.name.startswith(root):
                method = request.method
                method = replace(method, window=window, unit=method.unit or unit)
                asked = replace(request, method=method)
                break
        try:
            with file.open() as stream:
                record = records.get(_record_beside(file.name))
                results.append(_of_file(kind, name, stream, asked, record))
        except (ReperfError, *DAMAGE) as error:
            damage = "" if isinstance(error, ReperfError) else "damaged in the archive: "
            results.append([_refused(name, "unreadable", f"{damage}{error}", request)])
    return sorted(results, key=lambda some: natural_sort_key(some[0].measured.log if some else ""))


def _recorded(files: Mapping[str, ArchivedFile]) -> Mapping[str, tuple[Window, str | None]]:
    """How an archive of ours was measured: beginning of a log's name -> window and unit."""
    if not {CONFIG, CELLS, MANIFEST} <= files.keys():
        return {}
    recorded: dict[str, tuple[Window, str | None]] = {}
    try:
        report = json.loads(_read(files[CONFIG]))
        for suite in report["suites"]:
            usual, unit = suite["window"] or report["window"], suite["unit"]
            recorded[f"results/runs/{suite['name']}/"] = Window(**usual), unit
            for source in suite["from"]:
                recorded[source["path"]] = Window(**(source["window"] or usual)), unit
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = str(error).splitlines()[0]
        raise ReperfError(f"{CONFIG}: is no configuration of reperf 1.0: {why}") from None
    return recorded


def _read(file: ArchivedFile) -> bytes:
    """As much of an archived file as a run record may hold, and one byte more if there is more."""
    try:
        with file.open() as stream:
            return stream.read(LARGEST_RECORD + 1)
    except DAMAGE as error:
        raise ReperfError(f"{file.name}: damaged in the archive: {error}") from None


def _of_file(
    kind: FileClass, name: str, stream: IO[bytes], request: MeasureRequest, record: bytes | None
) -> list[RunResult]:
    """Measure a file that is a log, or may be one.

    Args:
        record: the content of the run.json beside it; None if there is none.
    """
    try:
        log = opened(stream)
    except Refused as refusal:
        return [_refused(name, refusal.code, str(refusal), request)]
    if kind == "open" and not is_log(beginning(log)):
        return []
    results = _of_log(name, log, stream, request, record)
    if kind == "sure" or all(result.measured.code not in NOT_READ for result in results):
        return results
    if not reads_like_log(beginning(log)):
        return []
    return [replace(result, unrecognised=True) for result in results]


def _of_log(
    name: str, log: LogFile, stream: IO[bytes], request: MeasureRequest, content: bytes | None
) -> list[RunResult]:
    record = None
    try:
        record = _checked_record(name, content, request)
        results = _measured(name, log, request, record)
    except ReperfError as error:
        results = [_refused(name, "record", str(error), request)]
    if record is None and not request.digests:
        return results
    stream.seek(0)
    digest = file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]  # any file has readinto
    if record is not None and record.status == "ok" and digest != record.log_sha256:
        reason = "the log has changed since its run record was written"
        results = [_refused(name, "record", reason, request, record)]
    if record is not None and len(results) > 1:
        reason = f"{len(results)} runs are in one log; a run of ours writes one"
        results = [_refused(name, "plan", reason, request, record)]
    return [replace(result, digest=digest) for result in results]


def _measured(
    name: str, log: LogFile, request: MeasureRequest, record: RunRecord | None
) -> list[RunResult]:
    if record is not None and record.status != "ok":
        reason = f"the run ended as {record.status}: {record.reason}"
        result = _refused(name, "run-failed", reason, request, record)
        return [replace(result, measured=replace(result.measured, method=""))]
    sources: list[tuple[str, Iterable[Fact]]] = []
    if record:
        sources.append(("the run record", [*facts_of_run(record.run), ("run_span", record.span)]))
    sources.append(("the path", facts_in_path(name)))
    of_runs: dict[int, Sources] = {
        number: [*sources, *facts] for number, facts in request.facts_of_runs.items()
    }
    chosen = request.log_format or (mllog.FORMAT.name if record else None)
    log_format = formats()[chosen] if chosen else None
    if request.pattern is not None:
        log_format = format_of(request.pattern)
    return [
        RunResult(measured, facts, record, request.planned, fingerprint=fingerprint)
        for measured, facts, fingerprint in measure_log(
            name,
            log,
            request.method,
            log_format,
            [*sources, *request.facts],
            sources_of_runs=of_runs,
        )
    ]


def facts_of_run(run: Run) -> list[Fact]:
    """The facts that a run's configuration says about its log."""
    return [
        ("parameters", load_workloads()[run.workload].parameters_of(run.shape)),
        *facts_of_configuration(dict(run) | dict(run.parallel or {"pipeline": ()})),
        # A label says nothing of how a run trains.
        *facts_of_system(run.system, shown_variant(run.variant, run.accumulation) or NO_VARIANT),
        ("nodes", run.nodes),
        ("devices_per_node", run.devices_per_node),
    ]


def _checked_record(name: str, content: bytes | None, request: MeasureRequest) -> RunRecord | None:
    """The run record beside a log, if the file there is one of ours."""
    planned, record_name = request.planned, _record_beside(name)
    claims = (
        content is not None and b'"record_version"' in content and len(content) <= LARGEST_RECORD
    )
    if planned is None and not claims:
        return None
    if content is None:
        raise ReperfError(f"{record_name}: not there; a run leaves one beside its log")
    record = RunRecord.parse(content, record_name)
    if planned is not None and (why := record.run.differences(planned)):
        raise ReperfError(f"the run is not the one that is asked for: {why}")
    if request.plan is not None and record.plan != request.plan:
        why = f"{record_name}: is of plan {record.plan or 'none'}; allowed: {request.plan}"
        raise ReperfError(why)
    return record


def _record_beside(name: str) -> str:
    """The path of the record beside a log."""
    return str(PurePath(name).with_name(RUN_RECORD))


def _refused(
    name: str, code: str, reason: str, request: MeasureRequest, record: RunRecord | None = None
) -> RunResult:
    """The result where there is no number: the code of the refusal, and why."""
    chosen = mllog.FORMAT.name if record or request.planned else None
    method = request.method.name
    measured = Measurement(name, chosen, "refused", reason, code=code, method=method)
    return RunResult(measured, Facts(), record, request.planned)


def _drop_non_logs(
    name: str, results: Iterable[list[RunResult]], request: MeasureRequest
) -> Iterator[RunResult]:
    """Results for a folder or archive; what only reads like a log comes last, if asked for."""
    last, empty = [], True
    for result in chain.from_iterable(results):
        if result.unrecognised:
            last.append(result)
        else:
            empty = False
            yield result
    if request.include_unrecognised and last:
        yield from last
    elif empty:
        yield _refused(name, "no-log", NO_LOG, request)
