"""One log, with the run record that may lie beside it."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePath

from reperf.config import Run
from reperf.errors import ReperfError
from reperf.layout import RUN_RECORD
from reperf.logs.configured import NO_VARIANT, facts_of_configuration, facts_of_system
from reperf.logs.facts import Fact, Facts, facts_in_path
from reperf.logs.formats import formats, mllog
from reperf.logs.recognise import NOT_READ
from reperf.logs.scan import Stream
from reperf.logs.user_pattern import format_of
from reperf.measuring.answer import Answer, Question, refused
from reperf.measuring.likeness import Continued, Name, beginning, is_log, reads_like_log
from reperf.measuring.measure import Measurement, measure_log
from reperf.systems import load_workloads
from reperf.training.record import LARGEST_RECORD, RunRecord


def of_file(
    likeness: Name, name: str, stream: Stream, question: Question, record: bytes | None
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
    if all(one.measured.code not in NOT_READ for one in found):
        return found
    return [replace(one, doubt=reads_like_log(head)) for one in found]


def _of_stream(
    name: str, stream: Stream, question: Question, content: bytes | None
) -> list[Answer]:
    record, hashing = None, _Hashing(stream)
    try:
        record = _record_beside(name, content, question)
        hashed = question.digests or record is not None
        found = _measured(name, hashing if hashed else stream, question, record)
    except ReperfError as error:
        found = [refused(name, "record", str(error), question)]
    if record is None and not question.digests:
        return found
    digest = hashing.digest()
    if record is not None and record.status == "ok" and digest != record.log_sha256:
        reason = "the log has changed since its run record was written"
        found = [refused(name, "record", reason, question, record)]
    return [replace(one, digest=digest) for one in found]


def _measured(
    name: str, stream: Stream, question: Question, record: RunRecord | None
) -> list[Answer]:
    if record is not None and record.status != "ok":
        reason = f"the run ended as {record.status}: {record.reason}"
        measured = Measurement(
            name, mllog.FORMAT.name, "refused", reason, code="run-failed", method=""
        )
        return [Answer(measured, Facts(), record, question.planned)]
    told: list[tuple[str, Iterable[Fact]]] = []
    if record:
        said = [*facts_of_run(record.run), ("run_span", record.span)]
        told.append(("the run record", said))
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
            name, stream, question.method, log_format, told, told_of_runs=of_runs
        )
    ]


def facts_of_run(run: Run) -> list[Fact]:
    """The facts that a run's configuration says about its log."""
    return [
        ("parameters", load_workloads()[run.workload].parameters_of(run.shape)),
        *facts_of_configuration(dict(run)),
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
    if planned is not None and (why := record.why_not_of(planned)):
        raise ReperfError(f"the run is not the one that is asked for: {why}")
    if question.plan is not None and record.plan != question.plan:
        raise ReperfError(
            f"{beside(name)}: is of plan {record.plan or 'none'}; allowed: {question.plan}"
        )
    return record


class _Hashing:
    """A stream that computes the SHA-256 of what is read from it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._digest = sha256()

    def readinto(self, buffer: memoryview) -> int:
        """Read the next bytes, and say how many; none at the end."""
        read = self._stream.readinto(buffer) or 0
        self._digest.update(buffer[:read])
        return read

    def digest(self) -> str:
        """The digest of the whole stream; reads the rest first."""
        buffer = memoryview(bytearray(1 << 16))
        while self.readinto(buffer):
            pass
        return self._digest.hexdigest()


def beside(name: str) -> str:
    """The path of the record beside a log."""
    return str(PurePath(name).with_name(RUN_RECORD))


def read_record(stream: Stream) -> bytes:
    """As much of a file as a run record may hold, and one byte more if there is more."""
    return beginning(stream, LARGEST_RECORD + 1)
