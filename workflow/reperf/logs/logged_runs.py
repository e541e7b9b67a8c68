"""From records to training runs: a log may hold several."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from reperf.logs.accumulation import Bar, batches_per_step
from reperf.logs.clock import Clock
from reperf.logs.events import evaluated_in, facts_in, run_stamps, stopped_as
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, no_facts
from reperf.logs.scan import LONGEST_GAP, lines_of_rank, scan

MOST_RECORDS = 1 << 17
"""How many records of one run are kept; no window of an honest log needs so many."""


MOST_LATER = 1 << 14
"""How many records behind the window are kept."""


@dataclass
class LoggedRun:
    """What a log holds of one training run.

    Attributes:
        facts: what the text before the first record says, and what MLLOG lines behind it say.
        records: those that matter, in the log's order: of the measured rank, or of all ranks.
        later: those of the measured rank and the first epoch behind the window, as many as are
            read, and no more than MOST_LATER; without their text, unless it tells facts.
        ends: the first and the last of the records after which the log says that the run came to
            its end; None if the format does not say.
        ended_elsewhere: whether another rank says that the run came to its end.
        stopped_as: how the run stopped by the log, if it did not go well; else empty.
        began: when the run began by MLPerf's `run_start`; several times, if several lines say so.
        trained: when it ended well by MLPerf's `run_stop`, likewise.
        newest: the last record of the measured rank.
        overflow: whether there were more records than are kept.
        keeps_text: whether those behind the window keep their text.
    """

    facts: list[Fact]
    ends: list[Record] | None
    records: list[Record] = field(default_factory=list)
    later: list[Record] = field(default_factory=list)
    ended_elsewhere: bool = False
    stopped_as: str = ""
    began: set[float] = field(default_factory=set)
    trained: set[float] = field(default_factory=set)
    newest: Record | None = None
    overflow: bool = False
    keeps_text: bool = False
    _seen: set[Record] = field(default_factory=set)
    _seen_later: set[int] = field(default_factory=set)  # hashes: the text is not kept
    _bars: list[tuple[int, Bar]] = field(default_factory=list)

    def add(self, record: Record, last: float, evaluated: float = 0.0) -> bool:
        """Take one more record of the measured rank, which is the lowest that prints.

        Args:
            record: the record.
            last: records after this iteration are not needed.
            evaluated: seconds of evaluation since the record before it.

        Returns:
            Whether it is of that rank, and new.
        """
        if self.newest is None or (record.rank < self.newest.rank and record.iteration <= last):
            self.records, self.later, self._seen, self.newest = [], [], set(), record
            self.ends = None if self.ends is None else []
        if record.rank != self.newest.rank or record in self._seen:
            return False
        if record.iteration <= last or not self.records:
            self.newest = record
            self._keep(record, evaluated)
            return True
        if len(self.later) < MOST_LATER and record.epoch == self.records[0].epoch:
            if (known := hash(record)) in self._seen_later:
                return False
            self._seen_later.add(known)
            evaluated += record.evaluated
            text = record.text if self.keeps_text else b""
            self.later.append(record._replace(text=text, evaluated=evaluated))
        self.newest = record
        return True

    @property
    def first_epoch(self) -> list[Record]:
        """All records of the first epoch that are kept: how far another window could reach."""
        epoch = self.records[0].epoch
        return [*(record for record in self.records if record.epoch == epoch), *self.later]

    def learn(self, text: bytes, log_format: Format) -> None:
        """Take the facts in a text behind the first record, and before the newest."""
        self.facts += facts_in(text)
        if log_format.bar is not None and (bar := log_format.bar(text)) is not None:
            self._bars.append((self.newest.iteration, bar))

    def take_time(self, text: bytes) -> None:
        """Take when the run began and ended by a text; what follows its end is of another run."""
        for begins, seconds in run_stamps(text):
            if begins and not self.trained:
                self.began.add(seconds)
            elif not begins and self.began:
                self.trained.add(seconds)

    @property
    def time_to_train(self) -> float | None:
        """Seconds from `run_start` to `run_stop`; None unless the log says one of each."""
        if len(self.began) != 1 or len(self.trained) != 1:
            return None
        seconds = round(max(self.trained) - min(self.began), 3)
        return seconds if seconds > 0 else None

    def hear_of_end(self, text: bytes, log_format: Format) -> None:
        """Take what a text behind the newest record says of how the run ended."""
        if log_format.ended(text):
            rank = self.newest.rank
            if not rank or log_format.ended(lines_of_rank(text, rank)):
                self.ends = [*self.ends[:1], self.newest]
                return
            self.ended_elsewhere = True
        self.stopped_as = stopped_as(text) or self.stopped_as

    def conclude(self) -> None:
        """Take the facts that only the whole run shows.

        Where another rank alone says that the run ended, as one that evaluates does, the end may
        stand anywhere: that rank may be far ahead.
        """
        if self.ends == [] and self.ended_elsewhere and not self.stopped_as:
            self.ends = [self.newest]
        if bounds := batches_per_step(self._bars):
            self.facts.append(("batches_per_step", bounds))

    def add_of_any_rank(self, record: Record) -> None:
        """Take one more record of any rank; one that appears twice is taken twice."""
        self.newest = record
        self._keep(record)

    def _keep(self, record: Record, evaluated: float = 0.0) -> None:
        self.overflow = len(self.records) >= MOST_RECORDS
        if not self.overflow:
            self.records.append(record._replace(evaluated=evaluated) if evaluated else record)
            self._seen.add(record)

    def is_followed_by(self, record: Record) -> bool:
        """Whether a record begins another run: the count starts again, but time goes on."""
        first, before = self.records[0], self.newest
        if record.iteration > first.iteration and record.epoch >= first.epoch:
            return False
        if record.rank != before.rank or record in self._seen:
            return False
        begins_again = _place(record) <= _place(first) < _place(before)
        stamped = record.time is not None and before.time is not None
        return begins_again and not (stamped and record.time < before.time)

    def stepped_back_to(self, record: Record) -> bool:
        """Whether a record is no more than one step behind, as after a step that was skipped."""
        counted = [one.iteration for one in self.records]
        stride = max((after - before for before, after in pairwise(counted)), default=0)
        return self.newest.iteration - record.iteration <= stride


def _place(record: Record) -> tuple[int, int]:
    return record.epoch, record.iteration


def training_runs(pieces: Iterable[bytes], log_format: Format, last: float) -> Iterator[LoggedRun]:
    """The training runs that a log holds, one after the other, each of one rank.

    Args:
        pieces: the log, as from reperf.logs.scan.blocks.
        log_format: its format.
        last: records after this iteration are not needed.
    """
    run: LoggedRun | None = None
    text = _Text()
    for gap, record in scan(pieces, log_format, last):
        if gap and not gap.isspace():
            text.add(gap)
        if run is not None:
            run.take_time(gap)
        if run is not None and log_format.ended is not None:
            run.hear_of_end(gap, log_format)
        following = _unwrapped(record, run.newest if run else None, log_format.clock)
        begins = run is not None and following is not None and run.is_followed_by(following)
        if begins and log_format.repeats and run.stepped_back_to(following):
            begins = any(True for _ in log_format.facts(text.all()))
        if run is not None and following is not None and not begins:
            between = text.all()
            if run.add(following, last, _evaluated_in(between, log_format)) and between:
                run.learn(between, log_format)
                text.forget()
            continue
        if run is not None:
            if following is None:
                run.facts += facts_in(text.all())
            run.conclude()
            yield run
        if following is not None:
            head = text.all()
            run = _begin(head, log_format)
            run.take_time(head)
            # Seconds that the first record tells may reach back beyond where the log begins.
            run.add(following, last, _evaluated_in(head, log_format))
            run.learn(head, log_format)
            text.forget()


def whole_log(pieces: Iterable[bytes], log_format: Format) -> LoggedRun | None:
    """All that a log holds, taken for one run of all ranks, as the published extractors do."""
    run: LoggedRun | None = None
    for gap, record in scan(pieces, log_format, float("inf"), all_ranks=True):
        if run is not None:
            run.facts += facts_in(gap)
        elif record is not None:
            run = _begin(gap, log_format)
            run.facts += facts_in(gap)
        if record is not None:
            run.add_of_any_rank(_unwrapped(record, run.newest, log_format.clock))
    return run


class _Text:
    """The newest text since the last record of the measured rank, LONGEST_GAP bytes at most."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Take what stands behind the text."""
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size > LONGEST_GAP and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft())

    def all(self) -> bytes:
        """The text."""
        if len(self._pieces) > 1:
            self._pieces = deque([b"".join(self._pieces)])
        return self._pieces[0] if self._pieces else b""

    def forget(self) -> None:
        """Begin again behind a record."""
        self._pieces.clear()
        self._size = 0


def _evaluated_in(text: bytes, log_format: Format) -> float:
    """The seconds of evaluation in a text between two records; infinity if nobody knows."""
    seconds, evaluates = evaluated_in(text), log_format.evaluates
    if not seconds and evaluates is not None and re.search(evaluates, text):
        return inf
    return seconds


def _begin(head: bytes, log_format: Format) -> LoggedRun:
    return LoggedRun(
        facts=list(log_format.facts(head)),
        ends=None if log_format.ended is None else [],
        keeps_text=log_format.tells is not no_facts,
    )


def _unwrapped(record: Record | None, newest: Record | None, clock: Clock | None) -> Record | None:
    """The record, with the days added to its time that its clock has lost at midnights."""
    if record is None or newest is None or clock is None or clock.period is None:
        return record
    days = round((newest.time - record.time) / clock.period)
    return record._replace(time=record.time + days * clock.period) if days > 0 else record
