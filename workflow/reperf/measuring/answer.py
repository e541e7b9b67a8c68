"""What is asked of logs, and what is answered."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from reperf.config import Run
from reperf.logs.facts import Facts
from reperf.logs.formats import mllog
from reperf.measuring.evidence import Evidence
from reperf.measuring.likeness import SUFFIXES
from reperf.measuring.measure import Measurement, Method, Told
from reperf.records.run_record import RunRecord

NO_LOG = f"no log is in it; allowed: {', '.join(SUFFIXES)}, without an ending, archives"


@dataclass(frozen=True)
class Question:
    """What is asked of each log.

    Attributes:
        method: how to measure.
        log_format: name of the logs' format; None: found from the content of each.
        pattern: a regular expression of the logs' records, as reperf.logs.user_pattern reads it,
            instead of a format.
        told: facts from the command line or the configuration, and which of the two.
        told_of_runs: the same about single runs, by their number in each log; if there are any,
            only these runs are measured.
        digests: whether the SHA-256 of each log is wanted; it takes as long as measuring it.
        planned: the run that must have made the log, as the record beside it must confirm;
            None: whichever run the record names, if there is one.
        plan: the digest of its plan, which the record must name; None: of any plan.
        unread: whether to answer for files of no known format that need not be logs, but read like
            logs.
    """

    method: Method
    log_format: str | None = None
    pattern: str | None = None
    told: Told = ()
    told_of_runs: Mapping[int, Told] = field(default_factory=dict)
    digests: bool = False
    planned: Run | None = None
    plan: str | None = None
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
        evidence: what distinguishes the run from others; None if nothing was measured.
    """

    measured: Measurement
    facts: Facts
    record: RunRecord | None = None
    planned: Run | None = None
    digest: str = ""
    doubt: bool | None = None
    evidence: Evidence | None = None

    @property
    def run(self) -> Run | None:
        """The run that made the log, if it was one of ours."""
        return self.planned or (self.record.run if self.record else None)


def refused(
    name: str, code: str, reason: str, question: Question, record: RunRecord | None = None
) -> Answer:
    """The answer where there is no number: the code of the refusal, and why."""
    chosen = mllog.FORMAT.name if record or question.planned else None
    method = question.method.name
    measured = Measurement(name, chosen, "refused", reason, code=code, method=method)
    return Answer(measured, Facts(), record, question.planned)


def without_doubt(name: str, found: Iterable[list[Answer]], question: Question) -> Iterator[Answer]:
    """Results for a folder or archive; what only reads like a log comes last, if asked for."""
    doubtful, nothing = [], True
    for answer in chain.from_iterable(found):
        if answer.doubt is None:
            nothing = False
            yield answer
        elif answer.doubt and question.unread:
            doubtful.append(answer)
    yield from doubtful
    if nothing and not doubtful:
        yield refused(name, "no-log", NO_LOG, question)
