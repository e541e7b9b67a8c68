"""From records to training runs: a log may hold several."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from reperf.logs.format import Fact, Format, Record
from reperf.logs.scan import scan

MOST_RECORDS = 1 << 18
"""Records of one run that are kept; no window of an honest log needs as many."""


@dataclass
class LoggedRun:
    """What a log holds of one training run.

    Attributes:
        facts: what the text before the first record says.
        records: those of all ranks up to the iteration that was asked for, in the log's order,
            lines that repeat one word for word left out.
        ended: whether the run's end is in the log; None if the format does not say.
        newest: the last record of the reference rank.
        overflow: there were more records than are kept.
    """

    facts: tuple[Fact, ...]
    records: list[Record] = field(default_factory=list)
    ended: bool | None = None
    newest: Record | None = None
    overflow: bool = False
    _seen: set[Record] = field(default_factory=set)

    @property
    def reference(self) -> tuple[int, ...]:
        """The rank that is measured: the lowest that has printed."""
        return min(record.rank for record in self.records)

    def add(self, record: Record, last: float) -> None:
        """Take one more record of the run."""
        if record in self._seen:
            return
        needed = record.iteration <= last or not self.records
        newest = self.newest
        if newest is None or record.rank == newest.rank or (needed and record.rank < newest.rank):
            self.newest = record
        if not needed:
            return
        if len(self.records) == MOST_RECORDS:
            self.overflow = True
            return
        self._seen.add(record)
        self.records.append(record)

    def is_followed_by(self, record: Record) -> bool:
        """Whether a record begins another run: the count starts again, and no earlier."""
        before = self.newest
        if before is None or record.rank != before.rank or record in self._seen:
            return False
        first = next(one for one in self.records if one.rank == record.rank)
        begins_again = _place(record) <= _place(first) < _place(before)
        back_in_time = (
            record.time is not None and before.time is not None and record.time < before.time
        )
        return begins_again and not back_in_time


def _place(record: Record) -> tuple[int, int]:
    return record.epoch, record.iteration


def training_runs(stream: IO[bytes], log_format: Format, last: float) -> Iterator[LoggedRun]:
    """The training runs that a log holds, one after the other.

    Args:
        stream: the log's bytes.
        log_format: its format.
        last: records behind this iteration are not needed.
    """
    run: LoggedRun | None = None
    for gap, record in scan(stream, log_format, last):
        if run is not None and log_format.end is not None:
            run.ended = run.ended or log_format.end.search(gap) is not None
        if record is not None and run is not None and not run.is_followed_by(record):
            run.add(record, last)
            continue
        if run is not None:
            yield run
        if record is not None:
            run = LoggedRun(facts=tuple(log_format.facts(gap)))
            run.add(record, last)
