"""What a log format is, and what a record of a log holds."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from re import _constants, _parser  # type: ignore[attr-defined]  # private, and without types
from typing import Any, NamedTuple

from reperf.logs.clock import DATE, ELAPSED, TIME_OF_DAY, UNIX, YEARLESS, Clock, tick
from reperf.logs.facts import Fact, Facts


class Record(NamedTuple):
    """One printed iteration of one rank, or a range of iterations."""

    iteration: int
    """As the log prints it; of a range, its last."""
    rank: tuple[int, ...] = ()
    """From the launchers' labels on the line, outermost first; () where lines carry none."""
    epoch: int = 0
    """The epoch within which iterations are counted."""
    time: float | None = None
    """When the iteration was printed, in seconds on the log's clock."""
    duration: float | None = None
    """Seconds that the record's iterations took, if the log prints that."""
    span: int = 1
    """The number of iterations that the duration covers; 0 if nothing says how many."""
    tick: float = 0.0
    """The step, in seconds, in which the log prints its time or duration."""
    rate: float | None = None
    """The printed speed, in the format's own terms."""
    text: bytes = b""
    """The record as it stands in the log."""
    evaluated: float = 0.0
    """Seconds of evaluation since the record before it; infinity if nothing says how many."""
    evaluations: int = 0
    """How many evaluations these are."""
    stamp: float | None = None
    """When the line was written by the log's second clock, in seconds, if it has one."""
    pace: float | None = None
    """Seconds that an iteration takes as the line prints it beside its time stamp, roughly: a mean of
    the newest ones."""
    batch: int | None = None
    """How many batches were trained, by the line's epoch and its batch of it: another count of the
    iterations, but for where it begins."""
    fault: str = ""
    """Why the line cannot be of one run of the format's program; empty if it may be."""


class Estimate(NamedTuple):
    """What a published extractor makes of a log."""

    throughput: float
    first: int
    """The iteration after which measuring begins, as the log numbers it."""
    last: int
    samples: int | None = None
    seconds: float | None = None
    unit: str | None = None
    """The unit of the throughput, if it is not the format's."""


Read = Callable[[re.Match[bytes], tuple[int, ...]], Record | None]
"""Makes a record from a match and the rank of its line; None if the match is no record."""


@dataclass(frozen=True)
class Finder:
    """Finds facts in a text, and says in which lines."""

    find: Callable[[bytes], Iterable[Fact]]
    marks: tuple[bytes, ...]
    """Bytes one of which is in every line on which the facts depend."""

    def __call__(self, text: bytes) -> Iterable[Fact]:
        """The facts in a text."""
        return self.find(text)


def marked(*marks: bytes) -> Callable[[Callable[[bytes], Iterable[Fact]]], Finder]:
    """A decorator that says by which bytes a finder's lines are known."""
    return lambda find: Finder(find, marks)


def no_facts(_text: bytes) -> Iterable[Fact]:
    """The log says nothing about its run."""
    return ()


SKIPPED = "skipped steps"
"""What a log may count besides samples: the steps that loss scaling skipped so far."""
WAITED = "waited"
"""Likewise: for how many seconds the measured rank has waited for its next batch so far."""


def no_counts(_text: bytes) -> Mapping[str, float]:
    """The log counts nothing but iterations."""
    return {}


@dataclass(kw_only=True, eq=False)  # each is equal to itself alone
class Format:
    """One way of logging.

    Attributes:
        name: as given to `reperf measure --format`.
        system: whose logs these are: a folder under workflow/systems/, or another id.
        marker: bytes found in every record, and seldom elsewhere: what is searched for.
        signs: if the marker stands in the logs of others, too: bytes one of which is in a log of this
            format before its first record, or in that.
        pattern: regular expression of one record within its line, with PARTS and CLOCKS in braces,
            such as {ITERATION} and {DATE}. Its named groups are fields of Record. It must not match
            a record that is cut off after its last number.
        clock: of the records' times; left out, the one in the pattern.
        duration_in: seconds in the unit of the group `duration`.
        read: makes records from matches, if named groups are not enough.
        remembering: makes such a function for one log, if a match alone is not enough.
        rate_times: the facts by which the printed speed is multiplied to give samples/s of all
            ranks.
        accumulates: whether a step may be several batches whose gradients are summed: if nobody says
            how many, there is no number.
        evaluates: regular expression of what the program prints when it evaluates between two
            iterations, besides MLLOG lines: nobody knows for how long.
        repeats: whether the number of an iteration is printed again, or the one before it, after a
            step that was skipped, as loss scaling does.
        runs_ahead: whether the program may print lines before its devices have done their work, and
            says when it evaluates: the rest of the run tells.
        step_is: the fact that says how many samples one count of `iteration` is; several if the
            format leaves it open: the printed speed then decides. A "sample" is one, a "token"
            the part of one that "sample_tokens" says, "epoch_trained" what the log says is
            trained in an epoch, and "epoch_batches" are the whole batches that hold an epoch.
        facts: finds what the log says about its run in the text before the run's first record; a
            Finder, or it finds nothing in what is older than the newest LONGEST_GAP bytes.
        tells: finds what a record, as it stands in the log, says about its run. Those of a window
            must say the same.
        counts: finds, in a record as it stands in the log, what all ranks have trained on so far:
            samples, and whatever else is counted, by its name, such as tokens; besides that, SKIPPED
            and WAITED.
        ended: whether a text between two records, or after the last, says that the run came to
            its end; None if the format has no such line.
        closes: finds what such a text says about its run besides.
        begins: whether a text says that a run begins; None if the format has no such line.
        busy_paces: whether the seconds of an iteration that a line prints beside its stamp leave out
            waiting for input: it may take longer, and never less.
        mean_durations: whether, beside a time stamp, a duration is the mean time of an iteration
            since the line before: a second clock.
        untimed: why records tell no time, if they do not.
        yields: where several formats fit, those are meant that yield least: progress bars stand in
            logs of many programs, and MLLOG lines beside a program's own.
        evenly: whether the program prints at a fixed interval, so that a line which seems to
            cover more iterations than another follows one that is lost.
        in_two_lines: whether one line counts and another tells the time: in front of a hole, that may
            be the time of what comes behind it.
        counts_from: the number of the first iteration.
        unit: of the throughput; None if the workload decides.
        published: the published extractor's method; None if there is none.
        counting: what it counts, and from which number, if `counts_from` does not say it all. This
            and what follows is what docs/log-formats.md says where the other fields do not tell.
        timing: where the times are from, if not from time stamps alone.
        speed_of: of how many devices the printed speed is.
        extractor: what the published extractor does.
    """

    name: str
    system: str
    marker: bytes
    pattern: str
    signs: tuple[bytes, ...] = ()
    clock: Clock | None = None
    duration_in: float = 1.0
    read: Read | None = None
    remembering: Callable[["Format"], Read] | None = None
    rate_times: tuple[str, ...] = ()
    accumulates: bool = False
    evaluates: bytes | None = None
    repeats: bool = False
    runs_ahead: bool = False
    step_is: tuple[str, ...] = ("global_batch",)
    facts: Callable[[bytes], Iterable[Fact]] = no_facts
    tells: Callable[[bytes], Iterable[Fact]] = no_facts
    counts: Callable[[bytes], Mapping[str, float]] = no_counts
    ended: Callable[[bytes], bool] | None = None
    closes: Callable[[bytes], Iterable[Fact]] = no_facts
    begins: Callable[[bytes], bool] | None = None
    busy_paces: bool = False
    mean_durations: bool = False
    untimed: str = "the log prints neither time stamps nor durations"
    yields: int = 0
    evenly: bool = False
    in_two_lines: bool = False
    counts_from: int = 1
    unit: str | None = "samples/s"
    published: Callable[[Sequence[Record], Facts], Estimate] | None = None
    counting: str = ""
    timing: str = ""
    speed_of: str = ""
    extractor: str = "none"

    def __post_init__(self) -> None:
        for part in _PART.findall(self.pattern):
            self.clock = CLOCKS.get(part, self.clock)

    @cached_property
    def line(self) -> re.Pattern[bytes]:
        """The pattern, compiled."""

        def fill(part: re.Match[str]) -> str:
            if part[1] not in CLOCKS:
                return PARTS[part[1]]
            return rf"(?P<time>{CLOCKS[part[1]].pattern})"

        return re.compile(_PART.sub(fill, self.pattern).encode())

    def reader(self) -> Read:
        """A function that reads the matches of one log."""
        if self.remembering is not None:
            return self.remembering(self)
        return self.read or partial(read_groups, self)


def read_groups(
    log_format: Format,
    match: re.Match[bytes],
    rank: tuple[int, ...],
    covered: Callable[[tuple[int, ...], int], tuple[int, int]] | None = None,
) -> Record | None:
    """Make a record from the named groups of a match.

    Args:
        log_format: the log's format.
        match: of a line.
        rank: from the labels of the line.
        covered: gives, for a rank and an iteration, how many iterations the line covers, and by
            what its duration is multiplied; None: the line says the first, and nothing is.
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
        span, times = covered(rank, iteration)
    seconds = log_format.duration_in * times
    pace = pace_of(found)
    return Record(
        iteration=iteration,
        rank=rank,
        epoch=int(found.get("epoch") or 0),
        time=time,
        duration=float(duration) * seconds if duration else None,
        span=span,
        tick=tick(written) * (1.0 if stamp else seconds) if written else 0.0,
        rate=float(rate) if rate else None,
        pace=pace * log_format.duration_in if pace else None,
        text=match[0],
        batch=batches_of(match) if "batch" in found else None,
        fault=beyond(iteration, found.get("total")),
    )


def batches_of(match: re.Match[bytes]) -> int:
    """How many batches a line counts by the groups `turn`, `batch` and `batches`, from epoch 1 on."""
    turn, batch, batches = (int(match[group]) for group in ("turn", "batch", "batches"))
    return (turn - 1) * batches + batch


def beyond(iteration: int, total: bytes | None) -> str:
    """What is wrong with an iteration that a line counts beyond its own total; empty if nothing.

    Some programs that count from 0 print one line more, behind the last.
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
    "DURATION": rf"(?P<duration>{_DECIMAL})",
    "PACE": rf"(?P<pace>{_DECIMAL})",  # seconds an iteration
    "MEAN": rf"(?P<mean_time>{_DECIMAL})",  # seconds, of all iterations so far
    "PACES": rf"(?P<paces>{_DECIMAL})",  # iterations a second
    "NUMBER": r"[-+.\w]{1,40}",  # any that does not matter, nan and inf included
    "END": r"(?=\s)",  # white space follows: what was written last is not cut off
}
"""What a pattern may name in braces, so that it shows what the line looks like."""
CLOCKS = {
    "DATE": DATE,
    "ELAPSED": ELAPSED,
    "TIME_OF_DAY": TIME_OF_DAY,
    "UNIX": UNIX,
    "YEARLESS": YEARLESS,
}
"""Whose stamp a pattern may name likewise: it is the record's time."""


def facts_by(**patterns: str | tuple[str, ...]) -> Finder:
    """A finder of facts that are whole numbers above zero.

    Args:
        patterns: name of the fact -> regular expression whose first group is the number, or several.
    """
    several = ((name, [one] if isinstance(one, str) else one) for name, one in patterns.items())
    compiled = [
        (re.compile(one.encode()), literals_in(one), name) for name, some in several for one in some
    ]

    @marked(*chain.from_iterable(marks for _, marks, _ in compiled))
    def find(head: bytes) -> Iterator[Fact]:
        for pattern, marks, name in compiled:
            # This is several times as fast as to search for the pattern.
            if not any(mark in head for mark in marks):
                continue
            for match in pattern.finditer(head):
                # Python refuses numbers of thousands of digits; no fact has as many as twenty.
                if (value := int(match[1].lstrip(b"0")[:20] or b"0")) > 0:
                    yield name, value

    return find


def literals_in(pattern: str | bytes) -> tuple[bytes, ...]:
    """Texts one of which is in all that a regular expression matches; it may be an empty one."""
    parsed = list(_parser.parse(pattern))
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


def counts_by(patterns: Mapping[str, str]) -> Callable[[bytes], dict[str, int]]:
    """A finder of what a record says that all ranks have trained on so far.

    Args:
        patterns: regular expression whose first group is the number -> name of what is counted.
    """
    compiled = [(re.compile(text.encode()), name) for text, name in patterns.items()]

    def find(record: bytes) -> dict[str, int]:
        found = ((name, pattern.search(record)) for pattern, name in compiled)
        return {name: int(match[1]) for name, match in found if match}

    return find
