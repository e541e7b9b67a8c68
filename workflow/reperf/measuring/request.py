"""What is asked of logs, and what each of their runs gives."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from reperf.config import Run
from reperf.logs.facts import Facts
from reperf.logs.formats import mllog
from reperf.measuring.fingerprint import Fingerprint
from reperf.measuring.log_detection import SUFFIXES
from reperf.measuring.measure import Measurement, Method, Sources
from reperf.records.run_record import RunRecord

NO_LOG = f"no log is in it; allowed: {', '.join(SUFFIXES)}, without an ending, archives"


@dataclass(frozen=True)
class MeasureRequest:
    """What is asked of each log.

    Attributes:
        log_format: name of the logs' format; None: found from the content of each.
        pattern: a regular expression of the logs' records, as reperf.logs.user_pattern reads it,
            instead of a format.
        facts: facts from the command line or the configuration, and which of the two.
        facts_of_runs: the same about single runs, by their number in each log; if there are any,
            only these runs are measured.
        digests: whether the SHA-256 of each log is wanted; it takes as long as measuring it.
        planned: the run that must have made the log, as the record beside it must confirm;
            None: whichever run the record names, if there is one.
        plan: the digest of its plan, which the record must name; None: of any plan.
        include_unrecognised: whether to list files of no known format that need not be logs, but
            read like logs.
    """

    method: Method
    log_format: str | None = None
    pattern: str | None = None
    facts: Sources = ()
    facts_of_runs: Mapping[int, Sources] = field(default_factory=dict)
    digests: bool = False
    planned: Run | None = None
    plan: str | None = None
    include_unrecognised: bool = False


@dataclass(frozen=True)
class RunResult:
    """What one training run in a log gives, and what is known about it.

    Attributes:
        measured: the number, or the reason for none.
        facts: what is known, from all sources.
        record: of the run, if one of ours lies beside the log and is what was planned.
        planned: the planned run that was asked about, if any.
        digest: SHA-256 of the log, if it was wanted.
        unrecognised: whether the file is of no known format, and only reads like a log.
        fingerprint: what distinguishes the run from others; None if nothing was measured.
    """

    measured: Measurement
    facts: Facts
    record: RunRecord | None = None
    planned: Run | None = None
    digest: str = ""
    unrecognised: bool = False
    fingerprint: Fingerprint | None = None

    @property
    def run(self) -> Run | None:
        """The run that made the log, if it was one of ours."""
        return self.planned or (self.record.run if self.record else None)


def refused(
    name: str, code: str, reason: str, request: MeasureRequest, record: RunRecord | None = None
) -> RunResult:
    """The result where there is no number: the code of the refusal, and why."""
    chosen = mllog.FORMAT.name if record or request.planned else None
    method = request.method.name
    measured = Measurement(name, chosen, "refused", reason, code=code, method=method)
    return RunResult(measured, Facts(), record, request.planned)


def drop_non_logs(
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
        yield refused(name, "no-log", NO_LOG, request)
