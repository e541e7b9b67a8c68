"""From records to training runs: a log may hold several."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import median

from reperf.logs.clock import MILLISECONDS, TRAINED, UNIX, Clock
from reperf.logs.events import (
    GOOD,
    Evaluated,
    Phase,
    begins_run,
    evaluated_in,
    facts_in,
    has_begun,
    has_ended,
    run_events,
    stopped_as,
)
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints, Record
from reperf.logs.log_file import LogFile
from reperf.logs.scan import OF_RUN, lines_of_rank, scan

MOST_RECORDS = 1 << 17
"""How many records of one run are kept: a window that needs more is measured nowhere."""
MOST_TEXT = 1 << 26
"""Bytes of text between two records that are looked at, in all or half of them at either end."""
MOST_LATER = 1 << 14  # how many records after the window are kept
FEWEST_LINES = 5  # that must follow each other before a step back which is a resume


@dataclass
class LoggedRun:
    """What a log holds of one training run."""

    # what the text before the first record says, and what MLLOG lines after it say
    facts: list[Fact]
    # the first and the last of the records after which the log says that the run ended; None if the
    # format does not say
    ends: list[Record] | None
    last: float = inf  # records after this iteration are not needed
    # the needed records, in the log's order: of the measured rank, or of all ranks
    records: list[Record] = field(default_factory=list)
    # up to MOST_LATER records of the measured rank and the first epoch after the needed ones, without
    # their text
    later: list[Record] = field(default_factory=list)
    ended_elsewhere: bool = False  # whether another rank says that the run ended
    stopped_as: str = ""  # the status of a run that did not end well, by the log; else empty
    # the record before which the log says that another run begins; None: nowhere
    begun_again: Record | None = None
    # the iterations before which the program says again what it says before its first
    restarts: list[int] = field(default_factory=list)
    # the first record without a launcher's label after one that has one, or None
    unlabelled: Record | None = None
    # when the run began by MLPerf's `run_start`; several times, if several lines say so
    began: set[float] = field(default_factory=set)
    # when it ended well by MLPerf's `run_stop`, likewise
    trained: set[float] = field(default_factory=set)
    newest: Record | None = None  # the last record of the measured rank
    # whether there were more of the needed records than are kept: `last` is then nearer than it was
    overflow: bool = False
    # what the program was doing when it printed the newest record
    phase: Phase = field(default_factory=Phase)
    # whether it prints records while it evaluates: other devices do that, then, and no evaluation
    # keeps these from training
    meanwhile: bool = False
    _seen: set[int] = field(default_factory=set)  # hashes, for the text is not kept of all

    @property
    def first_epoch(self) -> list[Record]:
        """All records of the first epoch that are kept: how far another window could reach."""
        epoch = self.records[0].epoch
        return [*(record for record in self.records if record.epoch == epoch), *self.later]

    @property
    def time_to_train(self) -> float | None:
        """Seconds from `run_start` to `run_stop`; None unless the log says one of each."""
        if len(self.began) != 1 or len(self.trained) != 1:
            return None
        seconds = round(max(self.trained) - min(self.began), 3)
        return seconds if seconds > 0 else None

    def ignores(self, record: Record) -> bool:
        """Whether a record is of a rank that is not measured, or a line that was read before."""
        assert self.newest
        lower = record.rank < self.newest.rank and record.iteration <= self.last
        return hash(record) in self._seen or not (lower or record.rank == self.newest.rank)

    def add(self, record: Record, evaluated: Evaluated, phase: Phase) -> None:
        """Add a record that the run does not ignore, with the evaluations since the one before it."""
        needed = record.iteration <= self.last
        if self.newest is None or record.rank < self.newest.rank:
            if self.newest is not None and not record.rank:
                self.unlabelled = self.unlabelled or record
            self.records, self.later, self._seen = [], [], set()
            self.ends = None if self.ends is None else []
        self.newest, self.phase = record, phase
        self.meanwhile |= phase.evaluates and not phase.trains
        if needed and len(self.records) == MOST_RECORDS and not self.overflow:
            self.overflow, self.last = True, max(kept.iteration for kept in self.records)
        if record.iteration <= self.last or not self.records:
            # Where there were too many, one more steps back into the window: a sign of mixed ranks.
            most = MOST_RECORDS + MOST_LATER if self.overflow else inf
            other_epoch = self.overflow and record.epoch != self.records[0].epoch
            if other_epoch or len(self.records) >= most:
                return
            self.records.append(_after(evaluated, record))
        elif len(self.later) < MOST_LATER and record.epoch == self.records[0].epoch:
            self.later.append(_after(evaluated, record)._replace(text=b""))
        else:
            return
        self._seen.add(hash(record))

    def add_of_any_rank(self, record: Record) -> None:
        """Add a record of any rank; a record that appears twice is added twice."""
        self.newest = record
        self.overflow = len(self.records) >= MOST_RECORDS
        if not self.overflow:
            self.records.append(record)

    def note_times(self, text: bytes) -> None:
        """Note when the run began and ended by a text; what follows its end is of another run."""
        for event in run_events(text):
            if event.seconds is None:
                continue
            if event.begins and not self.trained:
                self.began.add(event.seconds)
            elif event.status == GOOD and self.began:
                self.trained.add(event.seconds)

    def note_end(self, text: bytes, log_format: Format) -> None:
        """Note what a text after the newest record says of how the run ended, if it says that."""
        if Prints.RUN_STOP not in log_format.prints:
            return
        if has_ended(text):
            assert self.newest
            rank = self.newest.rank
            if not rank or has_ended(lines_of_rank(text, rank)):
                self.ends = [*(self.ends or ())[:1], self.newest]
                if Prints.RUN_START in log_format.prints:
                    stops = (event.seconds for event in run_events(text) if event.status)
                    self.facts.append(("run_stop", next(stops, None)))
                return
            self.ended_elsewhere = True
        self.stopped_as = stopped_as(text) or self.stopped_as

    def conclude(self, log_format: Format) -> None:
        """Complete the run by what only all of it shows.

        Where another rank alone says that the run ended, as one that evaluates does, the end may
        stand anywhere: that rank may be far ahead.
        """
        if self.ends == [] and self.newest and self.ended_elsewhere and not self.stopped_as:
            self.ends = [self.newest]
        if self.meanwhile:
            self.records = list(map(_evaluated_meanwhile, self.records))
            self.later = list(map(_evaluated_meanwhile, self.later))
        if Prints.EVENLY in log_format.prints:
            self._doubt_spans()

    def _doubt_spans(self) -> None:
        """Drop the duration of lines that follow a missing line.

        What the log says of its own interval decides. Where it says none, one distance alone is no
        interval: lines may be lost between the two.
        """
        intervals = [value for name, value in self.facts if name == "print_every"]
        most = min(intervals) if intervals else 0 if len(self.first_epoch) == 2 else inf
        self.records, self.later = (
            [record._replace(span=0) if record.span > most else record for record in records]
            for records in (self.records, self.later)
        )

    def is_followed_by(self, record: Record, text: bytes, log_format: Format) -> bool:
        """Whether a record after some text begins another run: it counts anew, but time goes on.

        Where the log says that the run ended, its clock may be another's; where it says that another
        starts, that one may begin at a higher count, too. So may one that says again what the program
        says at its start: it goes on from a checkpoint, and trains some steps again.
        """
        first, before = self.records[0], self.newest
        assert before
        if _place(record) > _place(before) or record.rank != before.rank:
            return False
        if Prints.RUN_START in log_format.prints and begins_run(text):
            return True
        begins_again = _place(record) <= _place(first) < _place(before)
        if begins_again and Prints.REPEATS in log_format.prints and self._stepped_back_to(record):
            begins_again = bool(list(log_format.facts(text)))
        started = _is_head(text, log_format)
        ended = bool(self.ends and self.ends[-1] is before)
        ended |= (
            started and begins_again and log_format.clock is TRAINED
        )  # which begins with its run
        resumed = self._resumes_at(record, log_format)
        if record.time is None or before.time is None:
            return begins_again or started or resumed
        return (begins_again or started or resumed) and (ended or record.time >= before.time)

    def _resumes_at(self, record: Record, log_format: Format) -> bool:
        """Whether a record begins to train steps again, from a checkpoint, with no word about it.

        The lines before it follow each other, and another rank's would come at once.
        """
        assert self.newest
        lines = [*self.records[-FEWEST_LINES:], *self.later[-FEWEST_LINES:]][-FEWEST_LINES:]
        strides = [after.iteration - before.iteration for before, after in pairwise(lines)]
        back = self.newest.iteration - record.iteration
        if Prints.RUN_START in log_format.prints or len(lines) < FEWEST_LINES:
            return False
        if _place(lines[-1]) != _place(self.newest) or record.epoch != self.newest.epoch:
            return False
        if min(strides) <= 0 or back <= max(strides):
            return False
        times = [line.time for line in (*lines, record) if line.time is not None]
        if len(times) <= len(lines):
            return not times
        *usual, gap = (after - before for before, after in pairwise(times))
        return 2 * gap > median(usual)

    def _stepped_back_to(self, record: Record) -> bool:
        """Whether a record is no more than one step before the newest, as after a skipped step."""
        assert self.newest
        counted = [kept.iteration for kept in self.records]
        stride = max((after - before for before, after in pairwise(counted)), default=0)
        return self.newest.iteration - record.iteration <= stride


def _after(evaluated: Evaluated, record: Record) -> Record:
    """A record with the evaluations before it."""
    if not evaluated.count:
        return record
    return record._replace(
        evaluated=record.evaluated + evaluated.seconds, evaluations=evaluated.count
    )


def _evaluated_meanwhile(record: Record) -> Record:
    """A record, marked as preceded by an evaluation that ran beside training."""
    return record._replace(evaluated=inf) if record.evaluations else record


def _place(record: Record) -> tuple[int, int]:
    return record.epoch, record.iteration


def training_runs(log: LogFile, log_format: Format, last: float) -> Iterator[LoggedRun]:
    """The training runs that a log holds, one after the other, each of one rank.

    Args:
        last: records after this iteration are not needed.
    """
    run: LoggedRun | None = None

    def needed() -> float:
        if run is None:
            return last
        # Where the window's end is not printed, another window is proposed: every line counts.
        ends = run.last, run.last + log_format.counts_from - 1
        return run.last if run.records[-1].iteration in ends else inf

    gap = 0  # where the text since the newest record begins
    for start, stop, found in scan(log, log_format, needed):
        record = _unwrapped(found, run.newest if run else None, log_format.clock)
        if run is not None and run.ignores(record):
            continue
        text = _text(log, gap, start)
        gap = stop
        if run is not None and OF_RUN in text:
            run.note_times(text)
            run.note_end(text, log_format)
        if run is None or run.is_followed_by(record, text, log_format):
            facts = [*log_format.facts(text)]
            if run is not None:
                if not facts and run._resumes_at(record, log_format):
                    facts = run.facts  # nothing says them again
                run.conclude(log_format)
                yield run
            run = _begin(facts, log_format, last)
            run.note_times(text)
        elif text and not text.isspace():
            if Prints.RUN_START in log_format.prints and begins_run(text):
                run.begun_again = record
            if _is_head(text, log_format):
                run.restarts.append(record.iteration)
        run.facts += facts_in(text)
        run.add(record, *_evaluated(text, record, run, log_format))
    if run is not None:
        text = _text(log, gap, log.size)
        if OF_RUN in text:
            run.note_times(text)
            run.note_end(text, log_format)
        run.facts += facts_in(text)
        run.conclude(log_format)
        yield run


def whole_log(log: LogFile, log_format: Format) -> LoggedRun | None:
    """All that a log holds, taken for one run of all ranks, as the published extractors do."""
    run: LoggedRun | None = None
    gap = 0
    for start, stop, record in scan(log, log_format, lambda: inf, all_ranks=True):
        text = _text(log, gap, start)
        gap = stop
        if run is None:
            run = _begin([*log_format.facts(text)], log_format)
        run.facts += facts_in(text)
        run.add_of_any_rank(_unwrapped(record, run.newest, log_format.clock))
    if run is not None:
        run.facts += facts_in(_text(log, gap, log.size))
    return run


def _text(log: LogFile, start: int, stop: int) -> bytes:
    """The text between two offsets; of more than MOST_TEXT bytes, half as many at either end."""
    half = MOST_TEXT // 2
    if stop - start <= MOST_TEXT:
        return log.part(start, stop)
    return log.part(start, start + half) + b"\n" + log.part(stop - half, stop)


def _is_head(text: bytes, log_format: Format) -> bool:
    """Whether a text holds what the program says before its first record."""
    if Prints.RUN_START in log_format.prints:
        return False
    return any(log_format.facts(text)) or has_begun(text) or any(facts_in(text))


def _evaluated(
    text: bytes, record: Record, run: LoggedRun, log_format: Format
) -> tuple[Evaluated, Phase]:
    """The evaluations in the text before a record, and what the program does after it.

    The first record's own seconds may reach back beyond where the log begins. Of the last record in a
    chunk that was skipped, nobody knows either.
    """
    if record.evaluated == inf:
        return Evaluated(), Phase()
    if len(text) > MOST_TEXT:  # an evaluation may be in what was left out
        return Evaluated(1, inf), Phase()
    start, stop = -inf, inf
    # MLLOG lines have these clocks.
    if log_format.clock in (MILLISECONDS, UNIX) and record.time is not None:
        stop = record.time + record.tick
        if run.newest and run.newest.time is not None:
            start = run.newest.time - record.tick
    found, phase = evaluated_in(text, run.phase, (start, stop))
    if not found.count and log_format.says_evaluation(text):
        found = Evaluated(1, inf)
    return found, phase


def _begin(facts: list[Fact], log_format: Format, last: float = inf) -> LoggedRun:
    return LoggedRun(facts, ends=[] if Prints.RUN_STOP in log_format.prints else None, last=last)


def _unwrapped(record: Record, newest: Record | None, clock: Clock | None) -> Record:
    """The record, with the days added to its time that its clock has lost at midnights."""
    if newest is None or clock is None or clock.period is None:
        return record
    if newest.time is None or record.time is None:
        return record
    days = round((newest.time - record.time) / clock.period)
    return record._replace(time=record.time + days * clock.period) if days > 0 else record
