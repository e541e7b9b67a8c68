"""One log, with the run record that may lie beside it."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import file_digest
from pathlib import PurePath
from typing import IO

from reperf.config import Run
from reperf.errors import ReperfError
from reperf.layout import RUN_RECORD
from reperf.logs.checks import Refused
from reperf.logs.configured import facts_of_configuration
from reperf.logs.facts import Fact, Facts, facts_in_path
from reperf.logs.formats import formats, mllog
from reperf.logs.log_file import LogFile, Readable, opened
from reperf.logs.recognise import NOT_READ
from reperf.logs.user_pattern import format_of
from reperf.measuring.answer import Answer, Question, refused
from reperf.measuring.likeness import Name, beginning, is_log, reads_like_log
from reperf.measuring.measure import Measurement, measure_log
from reperf.measuring.variants import NO_VARIANT, facts_of_system
from reperf.records.run_record import LARGEST_RECORD, RunRecord
from reperf.systems import load_workloads


def of_file(
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
    try:
        log = opened(stream)
    except Refused as refusal:
        return [refused(name, refusal.code, str(refusal), question)]
    if likeness == "open" and not is_log(beginning(log)):
        return []
    found = _of_log(name, log, stream, question, record)
    if likeness == "sure" or all(answer.measured.code not in NOT_READ for answer in found):
        return found
    return [replace(answer, doubt=reads_like_log(beginning(log))) for answer in found]


def _of_log(
    name: str, log: LogFile, stream: IO[bytes], question: Question, content: bytes | None
) -> list[Answer]:
    record = None
    try:
        record = _record_beside(name, content, question)
        found = _measured(name, log, question, record)
    except ReperfError as error:
        found = [refused(name, "record", str(error), question)]
    if record is None and not question.digests:
        return found
    stream.seek(0)
    digest = file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]  # any file has readinto
    if record is not None and record.status == "ok" and digest != record.log_sha256:
        reason = "the log has changed since its run record was written"
        found = [refused(name, "record", reason, question, record)]
    return [replace(answer, digest=digest) for answer in found]


def _measured(
    name: str, log: LogFile, question: Question, record: RunRecord | None
) -> list[Answer]:
    if record is not None and record.status != "ok":
        reason = f"the run ended as {record.status}: {record.reason}"
        measured = Measurement(
            name, mllog.FORMAT.name, "refused", reason, code="run-failed", method=""
        )
        return [Answer(measured, Facts(), record, question.planned)]
    told: list[tuple[str, Iterable[Fact]]] = []
    if record:
        recorded = [*facts_of_run(record.run), ("run_span", record.span)]
        told.append(("the run record", recorded))
    told.append(("the path", facts_in_path(name)))
    of_runs = {number: [*told, *facts] for number, facts in question.told_of_runs.items()}
    told += question.told
    chosen = question.log_format or (mllog.FORMAT.name if record else None)
    log_format = formats()[chosen] if chosen else None
    if question.pattern is not None:
        log_format = format_of(question.pattern)
    return [
        Answer(measured, facts, record, question.planned, evidence=evidence)
        for measured, facts, evidence in measure_log(
            name, log, question.method, log_format, told, told_of_runs=of_runs
        )
    ]


def facts_of_run(run: Run) -> list[Fact]:
    """The facts that a run's configuration says about its log."""
    return [
        ("parameters", load_workloads()[run.workload].parameters_of(run.shape)),
        *facts_of_configuration(dict(run) | dict(run.parallel or {"pipeline": ()})),
        *facts_of_system(run.system, run.shown_variant or NO_VARIANT),
        ("nodes", run.nodes),
        ("devices_per_node", run.devices_per_node),
    ]


def _record_beside(name: str, content: bytes | None, question: Question) -> RunRecord | None:
    """The run record beside a log, if the file there is one of ours.

    Raises:
        ReperfError: it claims to be one, but is not; or it belongs to another run than planned.
    """
    planned = question.planned
    claims = (
        content is not None and b'"record_version"' in content and len(content) <= LARGEST_RECORD
    )
    if planned is None and not claims:
        return None
    if content is None:
        raise ReperfError(f"{beside(name)}: not there; a run leaves one beside its log")
    record = RunRecord.parse(content, beside(name))
    if planned is not None and (why := record.run.differences(planned)):
        raise ReperfError(f"the run is not the one that is asked for: {why}")
    if question.plan is not None and record.plan != question.plan:
        raise ReperfError(
            f"{beside(name)}: is of plan {record.plan or 'none'}; allowed: {question.plan}"
        )
    return record


def beside(name: str) -> str:
    """The path of the record beside a log."""
    return str(PurePath(name).with_name(RUN_RECORD))


def read_record(stream: Readable) -> bytes:
    """As much of a file as a run record may hold, and one byte more if there is more."""
    content = b""
    while piece := stream.read(LARGEST_RECORD + 1 - len(content)):
        content += piece
    return content
