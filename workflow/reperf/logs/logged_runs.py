"""From records to training runs: a log may hold several."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from reperf.logs.clock import MILLISECONDS, UNIX, Clock
from reperf.logs.events import (
    Evaluated,
    Phase,
    evaluated_in,
    facts_in,
    has_begun,
    run_stamps,
    stopped_as,
)
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, literals_in, no_facts
from reperf.logs.scan import LONGEST_GAP, OF_RUN, lines_of_rank, scan

MOST_RECORDS = 1 << 17
"""How many records of one run are kept: a window that needs more is measured nowhere."""


_MARKS = (b"_start", b"_stop", b"eval_accuracy", b"global_batch_size")
"""One of these is in every line from which events are learnt: evaluations, starts, ends, batches."""

MOST_LATER = 1 << 14
"""How many records behind the window are kept."""


@dataclass
class LoggedRun:
    """What a log holds of one training run.

    Attributes:
        facts: what the text before the first record says, and what MLLOG lines behind it say.
        records: those that matter, in the log's order: of the measured rank, or of all ranks.
        later: those of the measured rank and the first epoch behind them, as many as are read, and
            no more than MOST_LATER; without their text, unless it tells facts.
        ends: the first and the last of the records after which the log says that the run came to
            its end; None if the format does not say.
        ended_elsewhere: whether another rank says that the run came to its end.
        stopped_as: how the run stopped by the log, if it did not go well; else empty.
        begun_again: the record before which the log says that another run begins; None: nowhere.
        restarts: the iterations before which the program says again what it says before its first.
        unlabelled: the first record without a launcher's label behind one that has one, or None.
        began: when the run began by MLPerf's `run_start`; several times, if several lines say so.
        trained: when it ended well by MLPerf's `run_stop`, likewise.
        newest: the last record of the measured rank.
        last: records after this iteration are not needed.
        overflow: whether there were more of the needed records than are kept: `last` is then
            nearer than it was.
        keeps_text: whether those behind the window keep their text.
        phase: what the program was doing when it printed the newest record.
        meanwhile: whether it prints records while it evaluates: other devices do that, then, and
            no evaluation keeps these from training.
        evenly: whether lines stand for as many iterations as lie between two, which their distances
            tell, or the log itself.
    """

    facts: list[Fact]
    ends: list[Record] | None
    last: float = inf
    records: list[Record] = field(default_factory=list)
    later: list[Record] = field(default_factory=list)
    ended_elsewhere: bool = False
    stopped_as: str = ""
    begun_again: Record | None = None
    restarts: list[int] = field(default_factory=list)
    unlabelled: Record | None = None
    began: set[float] = field(default_factory=set)
    trained: set[float] = field(default_factory=set)
    newest: Record | None = None
    overflow: bool = False
    keeps_text: bool = False
    phase: Phase = field(default_factory=Phase)
    meanwhile: bool = False
    evenly: bool = False
    _seen: set[Record] = field(default_factory=set)
    _seen_later: set[int] = field(default_factory=set)  # hashes: the text is not kept

    def add(self, record: Record, evaluated: Evaluated = Evaluated()) -> bool:  # noqa: B008
        """Take one more record of the measured rank, which is the lowest that prints.

        Args:
            record: the record.
            evaluated: the evaluations since the record before it.

        Returns:
            Whether it is of that rank, and new.
        """
        needed = record.iteration <= self.last
        if self.newest is not None and self.newest.rank and not record.rank and needed:
            self.unlabelled = self.unlabelled or record
        if self.newest is None or (record.rank < self.newest.rank and needed):
            self.records, self.later, self._seen, self.newest = [], [], set(), record
            self.ends = None if self.ends is None else []
        assert self.newest
        if record.rank != self.newest.rank or record in self._seen:
            return False
        if needed and len(self.records) == MOST_RECORDS and not self.overflow:
            self.overflow, self.last = True, max(one.iteration for one in self.records)
        if record.iteration <= self.last or not self.records:
            self.newest = record
            self._keep(record, evaluated)
            return True
        if len(self.later) < MOST_LATER and record.epoch == self.records[0].epoch:
            if (known := hash(record)) in self._seen_later:
                return False
            self._seen_later.add(known)
            text = record.text if self.keeps_text else b""
            self.later.append(_after(evaluated, record)._replace(text=text))
        self.newest = record
        return True

    @property
    def first_epoch(self) -> list[Record]:
        """All records of the first epoch that are kept: how far another window could reach."""
        epoch = self.records[0].epoch
        return [*(record for record in self.records if record.epoch == epoch), *self.later]

    def learn(self, text: "_Text", log_format: Format) -> None:
        """Take what the text before the newest record says, besides facts about a run's begin."""
        assert self.newest
        self.facts += facts_in(text.all())

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
        """Take what a text behind the newest record says of how the run ended, if one says that."""
        if log_format.ended is None:
            return
        if log_format.ended(text):
            assert self.newest
            rank = self.newest.rank
            if not rank or log_format.ended(lines_of_rank(text, rank)):
                self.ends = [*(self.ends or ())[:1], self.newest]
                self.facts += log_format.closes(text)
                return
            self.ended_elsewhere = True
        self.stopped_as = stopped_as(text) or self.stopped_as

    def go_on(self, phase: Phase) -> None:
        """Take what the program was doing when it printed the newest record."""
        self.phase = phase
        self.meanwhile |= phase.evaluates and not phase.trains

    def conclude(self) -> None:
        """Take the facts that only the whole run shows.

        Where another rank alone says that the run ended, as one that evaluates does, the end may
        stand anywhere: that rank may be far ahead.
        """
        if self.ends == [] and self.newest and self.ended_elsewhere and not self.stopped_as:
            self.ends = [self.newest]
        if self.meanwhile:
            self.records = list(map(_not_apart, self.records))
            self.later = list(map(_not_apart, self.later))
        if self.evenly:
            self._doubt_spans()

    def _doubt_spans(self) -> None:
        """Take no time from lines that seem to stand for more iterations than they do.

        What the log says of its own interval decides. Where it says none, one distance alone is no
        interval: lines may be lost between the two.
        """
        told = [value for name, value in self.facts if name == "print_every"]
        most = min(told) if told else 0 if len(self.first_epoch) == 2 else inf
        self.records, self.later = (
            [one._replace(span=0) if one.span > most else one for one in records]
            for records in (self.records, self.later)
        )

    def add_of_any_rank(self, record: Record) -> None:
        """Take one more record of any rank; one that appears twice is taken twice."""
        self.newest = record
        self.overflow = len(self.records) >= MOST_RECORDS
        if not self.overflow:
            self.records.append(record)

    def _keep(self, record: Record, evaluated: Evaluated) -> None:
        # Where there were too many, one more steps back into the window: a sign of mixed ranks.
        if self.overflow and (
            record.epoch != self.records[0].epoch or len(self.records) >= MOST_RECORDS + MOST_LATER
        ):
            return
        self.records.append(_after(evaluated, record))
        self._seen.add(record)

    def is_followed_by(self, record: Record, text: "_Text") -> bool:
        """Whether a record begins another run: the count starts again, but time goes on.

        Where the log says that the run ended, its clock may be another's; where it says that another
        starts, that one may begin at a higher count, too.

        Args:
            record: the one behind the newest.
            text: what stands between the two.
        """
        first, before = self.records[0], self.newest
        assert before
        if _place(record) > _place(before) or record.rank != before.rank or record in self._seen:
            return False
        if text.begins_run():
            return True
        begins_again = _place(record) <= _place(first) < _place(before)
        ended = bool(self.ends and self.ends[-1] is before)
        if record.time is None or before.time is None:
            return begins_again
        return begins_again and (ended or record.time >= before.time)

    def stepped_back_to(self, record: Record) -> bool:
        """Whether a record is no more than one step behind, as after a step that was skipped."""
        assert self.newest
        counted = [one.iteration for one in self.records]
        stride = max((after - before for before, after in pairwise(counted)), default=0)
        return self.newest.iteration - record.iteration <= stride


def _after(evaluated: Evaluated, record: Record) -> Record:
    """A record with the evaluations before it."""
    if not evaluated.count:
        return record
    return record._replace(
        evaluated=record.evaluated + evaluated.seconds, evaluations=evaluated.count
    )


def _not_apart(record: Record) -> Record:
    """A record before which evaluations cannot be told from training."""
    return record._replace(evaluated=inf) if record.evaluations else record


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
    text = _Text(log_format)

    def needed() -> float:
        if run is None:
            return last
        # Where the window's end is not printed, another window is proposed: every line counts.
        ends = run.last, run.last + log_format.counts_from - 1
        return run.last if run.records[-1].iteration in ends else inf

    for gap, record in scan(pieces, log_format, needed):
        if gap and not gap.isspace():
            text.add(gap)
        if run is not None and OF_RUN in gap:
            run.take_time(gap)
            run.hear_of_end(gap, log_format)
        if record is None:
            continue
        following = _unwrapped(record, run.newest if run else None, log_format.clock)
        begins = run is not None and run.is_followed_by(following, text)
        if run and begins and log_format.repeats and run.stepped_back_to(following):
            begins = bool(text.facts())
        if run is not None and not begins:
            evaluated, phase = text.evaluated(following, run)
            if run.add(following, evaluated):
                run.go_on(phase)
                if text:
                    run.learn(text, log_format)
                    if text.begins_run():
                        run.begun_again = run.newest
                    if text.is_head():
                        run.restarts.append(following.iteration)
                    text.forget()
            continue
        if run is not None:
            run.conclude()
            yield run
        run = _begin(text.facts(), log_format, last)
        run.take_time(text.all())
        # Seconds that the first record tells may reach back beyond where the log begins.
        evaluated, phase = text.evaluated(following)
        run.add(following, evaluated)
        run.go_on(phase)
        run.learn(text, log_format)
        text.forget()
    if run is not None:
        run.facts += facts_in(text.all())
        run.conclude()
        yield run


def whole_log(pieces: Iterable[bytes], log_format: Format) -> LoggedRun | None:
    """All that a log holds, taken for one run of all ranks, as the published extractors do."""
    run: LoggedRun | None = None
    text = _Text(log_format)
    for gap, record in scan(pieces, log_format, lambda: inf, all_ranks=True):
        if run is not None:
            run.facts += facts_in(gap)
        else:
            text.add(gap)
        if record is None:
            continue
        if run is None:
            run = _begin(text.facts(), log_format)
            run.facts += facts_in(text.all())
        run.add_of_any_rank(_unwrapped(record, run.newest, log_format.clock))
    return run


class _Text:
    """The text since the last record of the measured rank, however long: of what is older than the
    newest LONGEST_GAP bytes, the lines that matter.
    """

    def __init__(self, log_format: Format) -> None:
        self._format = log_format
        self._marks = (*_MARKS, *getattr(log_format.facts, "marks", ()))
        self._evaluates_marks = literals_in(log_format.evaluates or b"")
        self._bounded = log_format.clock in (MILLISECONDS, UNIX)  # MLLOG lines have that clock
        self.forget()

    def forget(self) -> None:
        """Begin again behind a record."""
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._older = b""
        self._evaluates = self._unsure = False

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: bytes) -> None:
        """Take what stands behind the text."""
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size > LONGEST_GAP and len(self._pieces) > 1:
            self._condense(self._pieces.popleft())

    def all(self) -> bytes:
        """The text, or what matters of it."""
        if len(self._pieces) > 1:
            self._pieces = deque([b"".join(self._pieces)])
        newest = self._pieces[0] if self._pieces else b""
        return self._older + newest if self._older else newest

    def facts(self) -> list[Fact]:
        """What the text says about a run that begins behind it."""
        return list(self._format.facts(self.all()))

    def begins_run(self) -> bool:
        """Whether the text says that a run begins."""
        begins = self._format.begins
        return begins is not None and begins(self.all())

    def is_head(self) -> bool:
        """Whether the text holds what the program says before its first record."""
        if self._format.begins is not None:
            return False
        said = self.all()
        marks = getattr(self._format.facts, "marks", ())
        again = any(mark in said for mark in marks) and self.facts()
        return bool(again) or has_begun(said) or any(facts_in(said))

    def evaluated(self, record: Record, run: LoggedRun | None = None) -> tuple[Evaluated, Phase]:
        """The evaluations in the text, and what the program does behind it.

        Args:
            record: the one behind the text.
            run: to which it belongs; None if it is the first one.
        """
        start, stop = -inf, inf
        if self._bounded and record.time is not None:
            stop = record.time + record.tick
            if run is not None and run.newest and run.newest.time is not None:
                start = run.newest.time - record.tick
        text = self.all()
        before = run.phase if run else Phase()
        found, phase = evaluated_in(text, before, (start, stop))
        if self._unsure or (not found.count and (self._evaluates or self._has_evaluated(text))):
            found = Evaluated(1, inf)
        return found, phase

    def _has_evaluated(self, text: bytes) -> bool:
        evaluates = self._format.evaluates
        if evaluates is None or not any(mark in text for mark in self._evaluates_marks):
            return False
        return re.search(evaluates, text) is not None

    def _condense(self, piece: bytes) -> None:
        """Take what matters in the oldest piece, and let the rest go."""
        self._size -= len(piece)
        self._evaluates = self._evaluates or self._has_evaluated(piece)
        if not any(mark in piece for mark in self._marks):
            return
        lines = piece.splitlines(keepends=True)
        kept = (line for line in lines if any(mark in line for mark in self._marks))
        older = b"".join((self._older or b"\n", *kept))  # some facts begin with a line's end
        self._older = older[-LONGEST_GAP:]
        # Of so many lines, nobody adds up the evaluations.
        self._unsure = self._unsure or len(older) > LONGEST_GAP


def _begin(facts: list[Fact], log_format: Format, last: float = inf) -> LoggedRun:
    return LoggedRun(
        facts=facts,
        ends=None if log_format.ended is None else [],
        last=last,
        keeps_text=log_format.tells is not no_facts,
        evenly=log_format.evenly,
    )


def _unwrapped(record: Record, newest: Record | None, clock: Clock | None) -> Record:
    """The record, with the days added to its time that its clock has lost at midnights."""
    if newest is None or clock is None or clock.period is None:
        return record
    if newest.time is None or record.time is None:
        return record
    days = round((newest.time - record.time) / clock.period)
    return record._replace(time=record.time + days * clock.period) if days > 0 else record
