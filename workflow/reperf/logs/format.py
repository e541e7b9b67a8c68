"""What a log format is, and what a record of a log holds."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import cached_property, partial
from math import gcd
from re import _constants, _parser  # type: ignore[attr-defined]  # private, and without types
from typing import Any, NamedTuple

from reperf.logs.clock import DATE, ELAPSED, TIME_OF_DAY, UNIX, YEARLESS, Clock, tick
from reperf.logs.facts import Fact, Facts, Name, is_fact
from reperf.suggestions import did_you_mean


class Record(NamedTuple):
    """One printed iteration of one rank, or a range of iterations."""

    iteration: int  # as the log prints it; of a range, its last
    rank: tuple[int, ...] = ()
    """From the launchers' labels on the line, outermost first; () where lines carry none."""
    epoch: int = 0  # the epoch within which iterations are counted
    time: float | None = None  # when the iteration was printed, in seconds on the log's clock
    duration: float | None = None
    """Seconds that the record's iterations took, if the log prints that."""
    span: int = 1  # the number of iterations that the duration covers; 0 if nothing says how many
    tick: float = 0.0  # the step, in seconds, in which the log prints its time or duration
    rate: float | None = None  # the printed speed, in the format's own terms
    text: bytes = b""  # the record as it stands in the log
    evaluated: float = 0.0
    """Seconds of evaluation since the record before it; infinity if nothing says how many."""
    evaluations: int = 0  # how many evaluations these are
    stamp: float | None = None
    """When the line was written by the log's second clock, in seconds, if it has one."""
    pace: float | None = None
    """Seconds that an iteration takes as the line prints it beside its time stamp, roughly: a mean of
    the newest ones."""
    batch: int | None = None
    """How many batches were trained, by the line's epoch and its batch of it: another count of the
    iterations, but for where it begins."""
    fault: str = ""  # why the line cannot be of one run of the format's program; empty if it may be
    facts: tuple[Fact, ...] = ()
    """What the line says about its run, such as its batch; all lines of a window must agree."""
    counts: tuple[tuple[str, float], ...] = ()
    """What all ranks have trained on so far, by its name: samples, tokens; also SKIPPED, WAITED, SEEN."""


class Estimate(NamedTuple):
    """What a published extractor makes of a log."""

    throughput: float
    first: int  # the iteration after which measuring begins, as the log numbers it
    last: int
    samples: int | None = None
    seconds: float | None = None
    unit: str | None = None  # the unit of the throughput, if it is not the format's


Read = Callable[[re.Match[bytes], tuple[int, ...]], Record | None]
"""Makes a record from a match and the rank of its line; None if the match is no record."""

Published = Callable[[Sequence[Record], Facts], Estimate]
"""A published extractor's method; its docstring says what it does."""


Finder = Callable[[bytes], Iterable[Fact]]  # finds facts in a text


SKIPPED = "skipped steps"
"""What a log may count besides samples: the steps that loss scaling skipped so far."""
SEEN = "tokens, rounded"
"""Likewise: tokens in three digits. The batch is held against them; no number is made of them."""
WAITED = "waited"
"""Likewise: for how many seconds the measured rank has waited for its next batch so far."""


class Prints(Flag):
    """What is special about a program's lines."""

    REPEATS = auto()
    """An iteration's number, or the one before it, is printed again after a skipped step, as loss
    scaling does."""
    RUNS_AHEAD = auto()
    """Lines may be printed before the devices have done the work: the window is compared with the rest of
    the run."""
    BUSY_PACES = auto()
    """The seconds of an iteration that a line prints beside its time stamp leave out waiting for input: an
    iteration may take longer, and never less."""
    EVENLY = auto()
    """Each line covers the iterations since the previous line, at a fixed interval, and prints their mean
    time, or what `remembering=durations_since(..)` says."""
    STEPS = auto()
    """An iteration is a step of the optimizer, which may be several batches whose gradients are summed.
    The log is refused unless it, or the user, says how many."""
    BATCHES = auto()  # an iteration is a batch, also where gradients of several are accumulated
    RUN_START = auto()
    """A run begins with MLLOG's `run_start`, or with its `configuration`: where these are, and nowhere
    else, another run begins."""
    RUN_STOP = auto()  # the last line of a run that went well is MLLOG's `run_stop`
    IN_TWO_LINES = auto()
    """The step number and its time are on separate lines. Before a gap, a time may belong to a later
    step."""


NOTHING_ODD = Prints(0)


@dataclass(kw_only=True, eq=False)  # each is equal to itself alone
class Format:
    """One way of logging: what a line looks like, and what its numbers mean.

    Attributes:
        name: as given to `reperf measure --format`.
        system: the system whose logs these are: a folder of workflow/systems/, or another id; left
            out, the name.
        marker: bytes that are in every record, and seldom elsewhere; left out, the longest text of
            the pattern. Only lines that hold them are read.
        signs: hints, for a marker that logs of other formats hold, too: one of these is in a log of
            this format, in its first record or before.
        pattern: regular expression of one record within its line. PARTS and CLOCKS stand in braces,
            such as {ITERATION} and {DATE}; named groups are fields of Record. It must not match a
            record that is cut off after its last number: {END} says that white space follows.
        clock: of the records' times; left out, the clock in the pattern.
        read: makes a record from a match, if named groups are not enough.
        remembering: makes such a function for one log, if it must remember earlier lines.
        rate_times: facts by which the printed speed is multiplied to give samples/s of all ranks.
        evaluates: regular expression of what the program prints about an evaluation between two
            iterations, besides MLLOG lines. How long the evaluation took is not known.
        step_is: what one printed iteration counts: a fact that gives its samples, "sample", or "token"
            (1 / "sample_tokens"); "epoch_batches" are the whole batches that hold an epoch. List
            several if only the log can tell: the printed speed then decides.
        facts: finds what the text before the first record says about the run.
        untimed: why records have no time, if they have none.
        precedence: if several formats match, the one with the lowest value wins. Progress bars
            stand in logs of many programs, and MLLOG lines beside a program's own.
        counts_from: the number of the first iteration.
        unit: of the throughput; None if the workload decides.
        published: the published extractor's method; None if there is none.
        prints: what is special about the lines.
    """

    name: str
    system: str = "{name}"
    pattern: str
    marker: bytes = b""
    signs: tuple[bytes, ...] = ()
    clock: Clock | None = None
    read: Read | None = None
    remembering: Callable[["Format"], Read] | None = None
    rate_times: tuple[Name, ...] = ()
    evaluates: bytes | None = None
    step_is: tuple[Name, ...] = ("global_batch",)
    facts: Finder = lambda _text: ()  # of a log that says nothing about its run
    untimed: str = "the log prints neither time stamps nor durations"
    precedence: int = 0
    counts_from: int = 1
    unit: str | None = "samples/s"
    published: Published | None = None
    prints: Prints = NOTHING_ODD
    milliseconds: bool = field(init=False)
    """Whether the groups `duration` and `pace` are in milliseconds."""
    mean_durations: bool = field(init=False)
    """Whether, beside a time stamp, a line prints the mean time of an iteration since the line before:
    a second clock."""

    def __post_init__(self) -> None:
        """Check the names in the pattern.

        Raises:
            ValueError: a part is not one of PARTS or CLOCKS, a group is not one that is read, or no
                text is in all that the pattern matches, and there is no marker.
        """
        self.system = self.system.format(name=self.name)
        parts = _PART.findall(self.pattern)
        for part in parts:
            if part not in PARTS and part not in CLOCKS:
                known = sorted((*PARTS, *CLOCKS))
                raise ValueError(
                    f"{self.name}: {{{part}}} is no part of a pattern{did_you_mean(part, known)}; "
                    f"allowed: {', '.join(known)}"
                )
            self.clock = CLOCKS.get(part, self.clock)
        if self.read is None and self.remembering is None:
            for group in re.findall(r"\(\?P<(\w+)>", self.pattern):
                if group not in GROUPS:
                    raise ValueError(
                        f"{self.name}: nothing reads a group named {group}"
                        f"{did_you_mean(group, GROUPS)}; allowed: {', '.join(GROUPS)}"
                    )
        if not self.marker:
            self.marker, *others = literals_in(_PART.sub(".", self.pattern))
            if others or not self.marker:
                raise ValueError(f"{self.name}: no text is in every record; allowed: a marker")
        self.milliseconds = "MILLISECONDS" in parts or "PACE_MS" in parts
        has_duration = "DURATION" in parts or "MILLISECONDS" in parts
        self.mean_durations = has_duration and self.clock is not None

    @cached_property
    def line(self) -> re.Pattern[bytes]:
        """The pattern, compiled."""

        def fill(part: re.Match[str]) -> str:
            if part[1] not in CLOCKS:
                return PARTS[part[1]]
            return rf"(?P<time>{CLOCKS[part[1]].pattern})"

        return re.compile(_PART.sub(fill, self.pattern).encode())

    @cached_property
    def evaluation_marks(self) -> tuple[bytes, ...]:
        """Literal texts; each of the program's lines about an evaluation holds one of them."""
        return literals_in(self.evaluates) if self.evaluates else ()

    def says_evaluation(self, text: bytes) -> bool:
        """Whether the program's own words in a text are about an evaluation."""
        if self.evaluates is None or not any(mark in text for mark in self.evaluation_marks):
            return False
        return re.search(self.evaluates, text) is not None

    @property
    def remembers(self) -> bool:
        """Whether its reader must see all lines, in their order."""
        return self.remembering is not None or Prints.EVENLY in self.prints

    def reader(self) -> Read:
        """A function that reads the matches of one log."""
        if self.remembering is not None:
            return self.remembering(self)
        if Prints.EVENLY in self.prints:
            return durations_since()(self)
        return self.read or partial(read_groups, self)


def read_groups(
    log_format: Format,
    match: re.Match[bytes],
    rank: tuple[int, ...],
    covered: Callable[[re.Match[bytes], tuple[int, ...]], tuple[int, int]] | None = None,
) -> Record | None:
    """Make a record from the named groups of a match.

    Args:
        covered: gives, for a match and its rank, how many iterations the line covers, and by what
            its duration is multiplied; None: the line says the first, and nothing is.
    """
    found = match.groupdict()
    stamp, duration, rate = found.get("time"), found.get("duration"), found.get("rate")
    iteration, span, times = int(found["iteration"]), int(found.get("span") or 1), 1
    if span == 0:
        return None
    written = (stamp or duration or b"").decode()
    try:
        time = log_format.clock.seconds(written) if stamp and log_format.clock else None
    except ValueError:
        return None
    if labelled := found.get("rank"):
        rank = (*rank, int(labelled))
    if covered is not None:
        span, times = covered(match, rank)
    unit = 0.001 if log_format.milliseconds else 1.0
    seconds = unit * times
    pace = pace_of(found)
    return Record(
        iteration=iteration,
        rank=rank,
        epoch=int(found.get("epoch") or 0),
        time=time,
        duration=float(duration) * seconds if duration else None,
        span=span,
        tick=tick(written) * (1.0 if stamp else seconds) if written else 0.0,
        rate=float(rate.replace(b",", b"")) or None if rate else None,
        pace=pace * unit if pace else None,
        text=match[0],
        batch=batches_of(match) if "batch" in found else None,
        fault=beyond(iteration, found.get("total")),
        facts=(
            *((name, value) for name in _FACTS if (value := _number(found.get(name)))),
            *((("accumulation", 1),) if Prints.BATCHES in log_format.prints else ()),
        ),
        counts=tuple(
            (name, count)
            for group, name in _COUNTS.items()
            if (count := _number(found.get(group))) is not None
        ),
    )


def _number(written: bytes | None) -> int | None:
    """A whole number, of which commas may part the thousands."""
    return int(written.replace(b",", b"")) if written else None


class Spans:
    """How many iterations each line of one rank covers, whose time is that since the line before.

    The lines do not say it, but their program prints at the multiples of a fixed interval, which
    therefore divides the number of each line and the distance between any two. So a missing line is a
    hole in the run, and its time is not taken from the next one.
    """

    def __init__(self, before: int = 0) -> None:
        """Begin before the first line.

        Args:
            before: how many iterations before a multiple of its interval the program prints.
        """
        self._before = before
        self._first: int | None = None
        self._newest = self._interval = 0

    def of(self, iteration: int) -> int | None:
        """How many iterations the next line covers: 0 if lines were missing, None of the first."""
        if self._first is None or iteration <= self._first:
            self._first = self._newest = iteration
            self._interval = 0
            return None
        if iteration <= self._newest:  # printed again
            return self._interval
        interval = gcd(self._interval, iteration - self._newest, iteration + self._before)
        # Lines were missing so far: what the previous ones covered was less than it seemed.
        shrank = interval < self._interval
        self._newest, self._interval = iteration, interval
        return 0 if shrank else interval


def durations_since(
    *, of_all: bool = False, before: int = 0, newest: int | None = None, within_epochs: bool = False
) -> Callable[[Format], Read]:
    """A maker of readers for one log, as `Format.remembering` wants it.

    Args:
        of_all: whether `duration` is the time of all iterations since the line before, not their
            mean.
        before: how many iterations before a multiple of its interval the program prints.
        newest: the iterations of which it is the mean, if those are always as many: a line that
            stands for others tells no time.
        within_epochs: whether it begins again with each epoch, by the group `batch`.
    """

    def remembering(log_format: Format) -> Read:
        spans: defaultdict[tuple[int, ...], Spans] = defaultdict(partial(Spans, before))

        def covered(match: re.Match[bytes], rank: tuple[int, ...]) -> tuple[int, int]:
            span = spans[rank].of(int(match["iteration"]))
            if span is None:  # a mean tells the time of the last iteration, at least
                span = 0 if of_all else 1
            if within_epochs:
                span = min(span, int(match["batch"]))
            return span, 1 if of_all else span

        def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
            record = read_groups(log_format, match, rank, covered)
            if record is None or newest in (None, record.span) or record.span == 1:
                return record
            return record._replace(duration=None)

        return read

    return remembering


def batches_of(match: re.Match[bytes]) -> int:
    """How many batches a line counts by the groups `turn`, `batch` and `batches`, from epoch 1 on."""
    turn, batch, batches = (int(match[group]) for group in ("turn", "batch", "batches"))
    return (turn - 1) * batches + batch


def beyond(iteration: int, total: bytes | None) -> str:
    """What is wrong with an iteration that a line counts beyond its own total; empty if nothing.

    Some programs that count from 0 print one line more, after the last.
    """
    if total is None or iteration <= int(total):
        return ""
    return f"iteration {iteration} is printed, of {int(total)} in all"


def pace_of(found: Mapping[str, bytes | None]) -> float | None:
    """The seconds an iteration takes by the groups `pace` or `paces` of a match; None: none, or 0."""
    pace, paces = found.get("pace"), found.get("paces")
    if pace is not None:
        return float(pace) or None
    return 1 / float(paces) if paces is not None and float(paces) else None


_PART = re.compile(r"\{([A-Z_]+)\}")
_COUNT = r"\d{1,12}"
_DECIMAL = r"\d{1,15}(?:\.\d{0,20})?(?:[eE][-+]?\d\d?)?"
PARTS = {
    "ITERATION": rf"(?P<iteration>{_COUNT})",
    "EPOCH": rf"(?P<epoch>{_COUNT})",
    "RANK": r"(?P<rank>\d{1,6})",
    "TOTAL": rf"(?P<total>{_COUNT})",  # of iterations, in the run or in the epoch that counts them
    "TURN": rf"(?P<turn>{_COUNT})",  # the epoch, of lines whose iterations count on through all
    "BATCH": rf"(?P<batch>{_COUNT})",  # of that epoch
    "BATCHES": rf"(?P<batches>{_COUNT})",  # of each epoch
    "SPAN": rf"(?P<span>{_COUNT})",
    "RATE": rf"(?P<rate>{_DECIMAL})",
    "DURATION": rf"(?P<duration>{_DECIMAL})",  # seconds
    "MILLISECONDS": rf"(?P<duration>{_DECIMAL})",
    "PACE": rf"(?P<pace>{_DECIMAL})",  # seconds an iteration
    "PACE_MS": rf"(?P<pace>{_DECIMAL})",
    "PACES": rf"(?P<paces>{_DECIMAL})",  # iterations a second
    "THOUSANDS": r"(?P<rate>\d[\d,]{0,18})",  # a speed such as 807,569
    "SAMPLES": r"(?P<samples>\d{1,15})",  # that all devices have trained on so far
    "TOKENS": r"(?P<tokens>\d[\d,]{0,18})",  # likewise
    "SKIPPED": r"(?P<skipped>\d{1,12})",  # steps that loss scaling skipped so far
    "GLOBAL_BATCH": r"(?P<global_batch>\d{1,9})",
    "BATCH_SIZE": r"(?P<batch_size>\d{1,9})",  # of each device
    "NUMBER": r"[-+.\w]{1,40}",  # any that does not matter, nan and inf included
    "END": r"(?=\s)",  # white space follows: what was written last is not cut off
}
"""What a pattern may name in braces, so that it shows what the line looks like."""
_FACTS: tuple[Name, ...] = ("global_batch", "batch_size")
_COUNTS = {"samples": "samples", "tokens": "tokens", "skipped": SKIPPED}
"""The groups of what a record says about its run, and of what it counts, by the count's name."""
GROUPS = tuple(dict.fromkeys(["time", *re.findall(r"\(\?P<(\w+)>", "".join(PARTS.values()))]))
"""The named groups that are read if a format does not read its matches itself."""
CLOCKS = {
    "DATE": DATE,
    "ELAPSED": ELAPSED,
    "TIME_OF_DAY": TIME_OF_DAY,
    "UNIX": UNIX,
    "YEARLESS": YEARLESS,
}
"""Whose stamp a pattern may name likewise: it is the record's time."""


_WORDS: dict[Name, dict[bytes, str]] = {"workload": {}, "input": {b"syntetic": "synthetic"}}
"""The facts that are words -> how we call what programs call otherwise."""


def facts_by(**patterns: str | tuple[str, ...]) -> Finder:
    """A finder of facts that are whole numbers above zero, or words.

    Args:
        patterns: name of the fact -> regular expression whose first group is the number, or several.
            Commas may part its thousands. Of a workload and an input, it is the word.

    Raises:
        KeyError: there is no such fact.
    """
    compiled: list[tuple[re.Pattern[bytes], tuple[bytes, ...], Name]] = []
    for name, several in patterns.items():
        if not is_fact(name):
            raise KeyError(name)
        for text in [several] if isinstance(several, str) else several:
            compiled.append((re.compile(text.encode()), literals_in(text), name))

    def find(head: bytes) -> Iterator[Fact]:
        for pattern, marks, name in compiled:
            # This is several times as fast as to search for the pattern.
            if not any(mark in head for mark in marks):
                continue
            for match in pattern.finditer(head):
                if name in _WORDS:
                    yield name, _WORDS[name].get(match[1], match[1].decode())
                    continue
                # Python refuses numbers of thousands of digits; no fact has as many as twenty.
                digits = match[1].replace(b",", b"").lstrip(b"0")
                if (value := int(digits[:20] or b"0")) > 0:
                    yield name, value

    return find


def literals_in(pattern: str | bytes) -> tuple[bytes, ...]:
    """Texts one of which is in all that a regular expression matches; it may be an empty one."""
    parsed = [part for part in _parser.parse(pattern) if part[0] is not _constants.AT]
    whole = len(parsed) == 1 and parsed[0][0] is _constants.BRANCH
    return tuple(map(_longest_literal, parsed[0][1][1] if whole else [parsed]))


def _longest_literal(parts: Iterable[tuple[Any, Any]]) -> bytes:
    found = [""]
    for kind, value in parts:
        if kind is _constants.LITERAL:
            found[-1] += chr(value)
        else:
            found.append("")
    return max(found, key=len).encode()
