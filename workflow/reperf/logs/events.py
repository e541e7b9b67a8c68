"""MLPerf's `:::MLLOG {...}` lines, which logs of any format may hold beside their own.

They say the global batch, when evaluations begin and end, and that a run came to its end. In v0.6 such
a line was `:::MLL 1560822378.645 global_batch_size: {"value": 2048, ..}`, in v0.5
`:::MLPv0.5.0 ssd 1544237486.040 (train.py:306) eval_start: 32`.

Source: github.com/mlcommons/logging, mlperf_logging/mllog; the submissions in
github.com/mlcommons/training_results_v0.7 to v4.0. HugeCTR prints the same events in brackets before
a script turns them into MLLOG lines.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import fsum, inf
from typing import Any, NamedTuple, TypeGuard

from reperf.logs.facts import Fact, Name
from reperf.logs.format import Finder

# If no object follows, the rest of the line is skipped: it may hold thousands of beginnings.
EVENT_LINE = r":::MLLOG (?:(\{.*\})(?=\s)|.*)"
"""The pattern of such a line, whose first group is its object."""
EVENT = re.compile(EVENT_LINE.encode())

MARK = b":::MLLOG "
GOOD = "success"  # the status of a run that ended well
_DECODER = json.JSONDecoder()
_REMEMBERED = 1 << 12  # bytes of the longest object that is remembered
_MLL = rb":::ML(?:L|Pv[\d.]{1,9} [\w.-]{1,40}) "
"""How such a line began in v0.6 and, with the benchmark's name, in v0.5: seconds follow."""
_BATCH = re.compile(
    rb'(?:"key": ?"global_batch_size", ?"value": ?|'
    + _MLL
    + rb'[\d.]{1,25} [^\r\n{}]{0,200}?\bglobal_batch_size: ?(?:\{"value": ?)?)(\d{1,15})\b'
)
_SUBMISSION = re.compile(
    rb'(?:"key": ?"submission_(?P<key>benchmark|division|platform)", ?"value": ?|'
    + _MLL
    + rb'[\d.]{1,25} [^\r\n{}]{0,200}?\bsubmission_(?P<old>benchmark|division|platform): ?\{"value": ?)'
    rb'"(?P<value>[^"\\\r\n]{1,100})"'
)
_WORKLOADS = {"resnet": "resnet50", "bert": "bert-large", "transformer": "transformer-big"}
"""What MLPerf calls a workload that we, too, have a name for; the others are none of ours.

Source: github.com/mlcommons/training, the READMEs of its benchmarks; transformer was trained until v0.7.
"""
_TIME = rb"(?P<time>\d{1,15}(?:\.\d{1,9})?(?:e[+-]?\d\d?)?)"
_KEY = rb"(?P<%s>eval_(?:start|stop|accuracy)|run_stop|%s(?:epoch|block)_(?:start|stop))"
_PHASE = re.compile(
    rb'"time_ms": ?' + _TIME + rb'[,}][^\r\n]{0,200}?"key": ?"' + _KEY % (b"event", b"") + rb'"'
    rb"|\[" + _TIME.replace(b"?P<time>", b"?P<clock>") + rb", " + _KEY % (b"bare", b"(?:train_)?")
    + rb"\b"
    rb"|" + _MLL + rb"(?P<unix>\d{1,15}\.\d{1,9}) [^\r\n{}]{0,200}?\b" + _KEY % (b"old", b"(?:train_)?")
    + rb"\b"
)  # fmt: skip
"""An event that says what a program does from then on."""
_RUN = re.compile(
    rb'(?:(?:"time_ms": ?(?P<ms>\d{1,15}(?:\.\d{1,9})?)[,}][^\r\n]{0,200}?)?"key": ?"|'
    + _MLL
    + rb"(?P<unix>\d{1,15}\.\d{1,9}) )run_(?P<event>start|stop)\b(?P<rest>[^\r\n]{0,1000})"
)
_STATUS = re.compile(rb'"status": ?"([^"\r\n]{1,40})')


def read_event(match: re.Match[bytes]) -> dict[str, Any]:
    """The object of a line that EVENT matches; empty if it holds none."""
    return event_of(match[1] or b"{}")


def events_in(text: bytes) -> Iterator[dict[str, Any]]:
    """The objects of all such lines in a text, empty ones included."""
    return map(read_event, EVENT.finditer(text))


def event_of(record: bytes) -> dict[str, Any]:
    """The object of a record as it stands in the log, with or without MARK."""
    text = record.removeprefix(MARK)
    return _parsed_once(text) if len(text) <= _REMEMBERED else _parsed(text)


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        event = _DECODER.decode(text.decode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


_parsed_once = lru_cache(maxsize=512)(_parsed)
"""Until the format is known, several readers look at each of the first lines."""


def stamp_of(event: Mapping[str, Any]) -> float | None:
    """When an event was written, in seconds; None if it does not say."""
    stamp = event.get("time_ms")
    return stamp / 1000 if is_number(stamp) and stamp >= 1 else None


def is_number(value: Any) -> TypeGuard[float]:  # noqa: ANN401 - whatever JSON gave
    """Whether JSON gave a number of a sensible size."""
    return type(value) in (int, float) and abs(value) < 1e18  # false for NaN, too


def is_whole(value: Any) -> TypeGuard[int]:  # noqa: ANN401 - whatever JSON gave
    """Whether JSON gave a whole number of a sensible size."""
    return type(value) is int and is_number(value)


def is_count(value: Any) -> TypeGuard[float]:  # noqa: ANN401 - whatever JSON gave
    """Whether JSON gave a count; others refuse one that is too large."""
    return type(value) in (int, float) and value >= 1


_FITS: dict[Name, Callable[[Any], bool]] = {
    "workload": lambda value: isinstance(value, str),
    "start_loss": is_number,
}
"""What the value of a fact must be that is no count."""


def facts_of(names: Mapping[str, Name]) -> Finder:
    """A finder of facts in such lines.

    Args:
        names: key of an event -> name of the fact, which is a count unless _FITS says otherwise.
    """

    def find(head: bytes) -> Iterator[Fact]:
        for event in events_in(head):
            name, value = names.get(str(event.get("key"))), event.get("value")
            if name and _FITS.get(name, is_count)(value):
                yield name, value

    return find


class RunEvent(NamedTuple):
    """What a line says of how a run begins or stops."""

    begins: bool
    seconds: float | None  # when the line was written, on the log's clock; None if it does not say
    status: str  # how the run stopped; empty if the line does not say


def run_events(text: bytes) -> list[RunEvent]:
    """The starts and stops of runs in a text."""
    found = []
    for match in _RUN.finditer(text) if b"run_st" in text else ():
        milliseconds, unix = match["ms"], match["unix"]
        seconds = float(milliseconds) / 1000 if milliseconds else float(unix) if unix else None
        status = _STATUS.search(match["rest"])
        begins = match["event"] == b"start"
        word = status[1].decode(errors="replace") if status and not begins else ""
        found.append(RunEvent(begins, seconds, word))
    return found


def has_begun(text: bytes) -> bool:
    """Whether a text holds the line that begins a run."""
    return any(event.begins for event in run_events(text))


def begins_run(text: bytes) -> bool:
    """Whether a text holds the line that begins a run, or one that says how it is configured."""
    return has_begun(text) or (
        b'"configuration"' in text
        and any(event.get("key") == "configuration" for event in events_in(text))
    )


def has_ended(text: bytes) -> bool:
    """Whether a text holds the line that ends a run that went well."""
    return any(event.status == GOOD for event in run_events(text))


def stopped_as(text: bytes) -> str:
    """The status with which a run stopped that did not go well; empty if a text says none."""
    statuses = (event.status for event in run_events(text))
    return next((status for status in statuses if status not in ("", GOOD)), "")


def facts_in(text: bytes) -> Iterator[Fact]:
    """What MLLOG lines in a text say about the run, whichever format the log has."""
    for match in _BATCH.finditer(text) if b"global_batch_size" in text else ():
        if (batch := int(match[1])) > 0:
            yield "global_batch", batch
    found = _SUBMISSION.finditer(text) if b"submission_" in text else ()
    pairs = [(line["key"] or line["old"], line["value"].decode(errors="replace")) for line in found]
    yield from (("platform", value) for key, value in pairs if key == b"platform")
    if (b"division", "open") not in pairs:  # there, the model may be another than the benchmark's
        names = (value for key, value in pairs if key == b"benchmark")
        yield from (("workload", _WORKLOADS.get(name, name)) for name in names)


class Evaluated(NamedTuple):
    """The evaluations between two records."""

    count: int = 0  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    seconds: float = 0.0
    """Between the stamps at their ends; infinity if one lacks, or if training went on meanwhile."""


class Phase(NamedTuple):
    """What a program is doing where a text ends, by its events so far."""

    evaluates: bool = False  # an evaluation is open
    trains: bool = False  # if so: the next epoch or block has begun meanwhile
    between_epochs: bool = False  # an epoch or a block has ended, and the next has not begun


def evaluated_in(
    text: bytes,
    phase: Phase = Phase(),  # noqa: B008
    bounds: tuple[float, float] = (-inf, inf),
) -> tuple[Evaluated, Phase]:
    """The evaluations in a text between two records.

    Where the next epoch begins before an evaluation is over, training goes on from there: it takes
    no time of its own any more.

    Args:
        bounds: the times of the records, in seconds on the clock of MLLOG lines, if they have it.

    Returns:
        The evaluations, and what the program is doing where the text ends.
    """
    if b"_start" not in text and b"_stop" not in text:
        return (Evaluated(1, inf) if phase.evaluates else Evaluated()), phase
    found = _Evaluations(phase, bounds)
    for match in _PHASE.finditer(text):
        found.take(match)
    return found.conclude(), found.phase


class _Evaluations:
    """Collects the evaluations in one piece of text."""

    def __init__(self, phase: Phase, bounds: tuple[float, float]) -> None:
        self.phase = phase
        self._bounds = bounds
        self._known = not phase.evaluates  # where it began, training may have gone on
        self._spans: list[tuple[float, float]] = []
        self._start: float | None = None
        self._accuracy: float | None = None

    def take(self, match: re.Match[bytes]) -> None:
        """Take the next event."""
        event = (match["event"] or match["bare"] or match["old"]).decode()
        time = float(match["unix"] or 0) or float(match["time"] or match["clock"]) / 1000
        if event == "eval_start":
            self._end(self._accuracy)
            self._known &= not self.phase.evaluates or self._accuracy is not None
            self._start, self._accuracy = time, None
            self.phase = self.phase._replace(evaluates=True, trains=False)
        elif event == "eval_stop":
            self._known &= self.phase.evaluates
            self._end(time)
            self.phase = self.phase._replace(evaluates=False, trains=False)
        elif event == "eval_accuracy":  # before or after the stop, or instead of it
            self._accuracy = time
        elif event == "run_stop":
            self._known &= self._start is None
            self._start, self.phase = None, Phase(between_epochs=True)
        else:
            self._turn(time, begins=event.endswith("_start"))
        if not match["clock"] and event.startswith("eval_"):
            self._known &= self._bounds[0] <= time <= self._bounds[1]

    def conclude(self) -> Evaluated:
        """What was found."""
        if self._start is not None and self._accuracy is not None:
            self._end(self._accuracy)
            self.phase = self.phase._replace(evaluates=False, trains=False)
        if not self._known or self.phase.evaluates:
            return Evaluated(max(1, len(self._spans)), inf)
        seconds = fsum(max(0.0, stop - start) for start, stop in self._spans)
        return Evaluated(len(self._spans), round(seconds, 6))

    def _end(self, time: float | None) -> None:
        if self._start is not None and time is not None:
            self._spans.append((self._start, time))
            self._start = None

    def _turn(self, time: float, *, begins: bool) -> None:
        """Take the beginning or the end of an epoch or a block."""
        if self._start is not None:
            self._known &= begins and self.phase.between_epochs  # else it trained all the time
            self._end(time)
            self.phase = self.phase._replace(trains=True)
        self.phase = self.phase._replace(between_epochs=not begins)
