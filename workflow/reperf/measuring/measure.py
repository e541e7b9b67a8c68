"""From a log to a throughput: one rule for every system, or a refusal that says why.

The rule: (samples between two printed iterations) / (time between them), both ends from one rank,
after the warm-up. A log that lacks what this needs gives no number. The method published with a
format can be asked for by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import pairwise
from math import inf
from typing import IO, Any, Literal, NamedTuple

from reperf.config import Window
from reperf.logs.checks import Refused
from reperf.logs.clock import UNIX
from reperf.logs.facts import LOG, Fact, FactName, Facts
from reperf.logs.format import Format, Prints
from reperf.logs.formats import mllog
from reperf.logs.log_file import LogFile, opened
from reperf.logs.logged_runs import MOST_RECORDS, LoggedRun, training_runs, whole_log
from reperf.logs.recognise import check_text, recognise
from reperf.logs.user_pattern import PATTERN, UNMATCHED
from reperf.measuring import SUMMED
from reperf.measuring.async_trainers import runs_of_ranks, split_by_rank, summed
from reperf.measuring.counts import further_count, per_second, unit_of
from reperf.measuring.intervals import intervals, step_times
from reperf.measuring.run_checks import check_complete
from reperf.measuring.step_size import step_samples
from reperf.measuring.window_rule import FASTEST, SLOWEST, Ends, by_window, printed, widest

_DATED = 1e9
"""Seconds: later times count from 1970, and give the day; others begin with the run or the day."""
_FEWEST = 5
"""Of so many different durations or more, in steps of the clock, no two runs have the same ones."""
_STEP = 1e-6  # the step in seconds of a clock whose stamps do not show it
_STEP_OF_UNIX = 1e-3
"""The step used for a clock that counts from 1970: its many digits are not exact to the last."""

Sources = Sequence[tuple[str, Iterable[Fact]]]
"""Sources of facts about a log's runs, other than the log: the name of each, and its facts."""


@dataclass(frozen=True)
class Method:
    """How to measure."""

    # the window rule, or what the format's published extractor does
    name: Literal["window", "published"] = "window"
    # of the window rule; None: the one that an archive of ours records, else the usual
    window: Window | None = None
    # what to count, such as tokens; None: what an archive of ours records, else samples, whatever
    # they are called
    unit: str | None = None
    # iterations, as the log numbers them, between which to measure instead of the window
    ends: Ends | None = None
    # take the widest window that the log allows after the warm-up, instead of those; in the first
    # MOST_RECORDS lines, if it prints more
    widest: bool = False
    otherwise_widest: bool = False  # take that window where the usual one is refused, and warn
    step_times: bool = False  # find out, too, how long the iterations of each run took

    def ends_in(self, log_format: Format) -> list[Ends]:
        """The window's ends as a log numbers them, the preferred ones first.

        A log that counts from 0 and prints 19, 39, .. has then trained on as many batches as
        another has at 20, 40, ..
        """
        window = self.window or Window()
        ends = self.ends or (window.first, window.last)
        if self.ends or log_format.counts_from == 1:
            return [ends]
        return [ends, (ends[0] - 1, ends[1] - 1)]


@dataclass(frozen=True)
class Measurement:
    """What one training run's log gives: a throughput, or the reason for none."""

    log: str  # name of the log
    format: str | None  # name of its format; None if it is not known
    status: Literal["ok", "refused"]  # whether there is a number
    reason: str = ""  # why there is no throughput
    throughput: float | None = None  # in `unit`
    unit: str | None = None  # what is counted, per second
    first: int | None = None  # the iteration at whose end the window starts, as the log numbers it
    last: int | None = None  # the one at whose end it stops
    samples: int | float | None = None  # those in the window, or whatever else the unit counts
    seconds: float | None = None  # how long the window took
    method: str = "window"  # how it was measured
    global_batch: int | None = None  # samples per step
    world_size: int | None = None  # devices
    run: int = 1  # which run of the log this is, from 1
    first_printed: int | None = None  # the first iteration that the log prints of the run
    # the last one; of several epochs that count alike, that of the first
    last_printed: int | None = None
    interval: int | None = None  # how many iterations lie between two printed ones, most often
    # the ends of the widest window that the rule allows after the warm-up; None if it allows none
    widest: Ends | None = None
    # the source of each fact that is known about the run: the log, the path, ...
    sources: Mapping[str, str] = field(default_factory=dict)
    # the share of `seconds` for which training waited for its data; None if the log does not say
    waited: float | None = None
    # what else the log counts in the window, such as tokens; `samples` themselves are what the
    # batches hold
    counted: Mapping[str, float] = field(default_factory=dict)
    # the first batch's loss without dropout, before any training; None if the log does not say
    start_loss: float | None = None
    # how many evaluations lay between the window's ends and were left out
    evaluations: int | None = None
    # the seconds that they took by their own stamps: none of `seconds`
    evaluated: float | None = None
    # seconds from the start of an MLPerf run to its end with success, which is its score,
    # evaluations included; None if the log does not say both once
    time_to_train: float | None = None
    # of the check that refuses, by which refusals are grouped; see reperf.logs.checks
    code: str = ""
    warnings: tuple[str, ...] = ()  # what to know beside the number, a sentence each


Span = tuple[float, float]  # when something began and ended, in seconds since 1970


class Fingerprint(NamedTuple):
    """What a log shows of the window in which its run was measured."""

    digest: str
    """SHA-256 of the window's iterations and times, or of its lines where the clock is so coarse
    that another run may have the same times."""
    span: Span | None
    """When the window began and ended; None if the log's clock does not give the day."""
    step_times: str = ""
    """As reperf.measuring.intervals.step_times gives them, if they were asked for."""


_Result = tuple[Measurement, Facts, Fingerprint | None]
_ANOTHER_WINDOW = frozenset(
    ("too-short", "hole", "too-many-lines", "clock", "repeated", "restart", "evaluations")
)
"""Refusals of a window that need not be those of another."""


def measure_log(
    name: str,
    stream: IO[bytes] | LogFile,
    method: Method,
    log_format: Format | None = None,
    sources: Sources = (),
    *,
    sources_of_runs: Mapping[int, Sources] | None = None,
) -> Iterator[_Result]:
    """Measure every training run that a log holds, compressed or not.

    Args:
        log_format: the log's format; by default, it is found from the content.
        sources: what others know about the runs; the log itself comes first.
        sources_of_runs: the same about single runs, by their number, from 1: only these are
            measured.

    Yields:
        What each run gives, what is known about it, and what distinguishes it from other runs.

    Examples:
        >>> from io import BytesIO
        >>> [(measured, _, _)] = measure_log("empty.log", BytesIO(), Method())
        >>> measured.status, measured.code, measured.reason
        ('refused', 'no-text', 'the file is empty')
    """
    try:
        log = opened(stream)
        if log_format is None:
            log_format = recognise(log)
        check_text(log)
    except Refused as refusal:
        known_format = log_format.name if log_format else None
        yield _refused(name, known_format, method, refusal), Facts(), None
        return
    measure = partial(
        _measure_runs, name, log, log_format, sources=sources, of_runs=sources_of_runs
    )
    if not method.otherwise_widest or method.window or method.ends:
        yield from measure(method)
        return
    wide: dict[int, _Result] | None = None
    for result in list(measure(method)):
        usual = result[0]
        if usual.code in _ANOTHER_WINDOW:
            if wide is None:
                wide = {other[0].run: other for other in measure(replace(method, widest=True))}
            if usual.run in wide and wide[usual.run][0].status == "ok":
                measured, facts, fingerprint = wide[usual.run]
                why = f"{usual.first}:{usual.last} is refused: {usual.reason}"
                warnings = *measured.warnings, f"widest: the widest window is taken; {why}"
                result = replace(measured, warnings=warnings), facts, fingerprint  # noqa: PLW2901
        yield result


def _measure_runs(
    name: str,
    log: LogFile,
    log_format: Format,
    method: Method,
    *,
    sources: Sources,
    of_runs: Mapping[int, Sources] | None,
) -> Iterator[_Result]:
    """Measure the runs in a log whose format is known; see `measure_log`."""
    number, ranks = 0, split_by_rank(log, log_format)
    for number, run in enumerate(_runs(ranks[0], log_format, method), 1):
        known = of_runs.get(number) if of_runs else sources
        if known is None:
            continue
        measured, facts = _measure_run(name, run, log_format, method, known)
        if len(ranks) > 1 or facts.get("together"):
            measured = replace(measured, method=SUMMED)
            if measured.status == "ok":
                how = log_format, method, known
                measured = _measure_together(measured, facts, ranks, how, number)
        fingerprint = None
        if measured.status == "ok":
            first, last = measured.first or 0, measured.last or 0
            if log_format is mllog.FORMAT and len(ranks) == number == 1:
                measured = _of_all_ranks(measured, log, (first, last))
            steps = step_times(run.first_epoch, log_format) if method.step_times else ""
            fingerprint = _fingerprint_of(run, log_format, first, last, steps)
        yield replace(measured, run=number), facts, fingerprint
    if not number:
        reason = f"no line is one that {log_format.name} prints for an iteration"
        refusal = Refused("no-lines", UNMATCHED if log_format.name == PATTERN else reason)
        yield _refused(name, log_format.name, method, refusal), Facts(), None
        return
    for missing in sorted(asked for asked in of_runs or () if asked > number):
        refusal = Refused("no-run", f"it holds no run {missing}: the last is run {number}")
        refused = _refused(name, log_format.name, method, refusal)
        yield replace(refused, run=missing), Facts(), None


def _fingerprint_of(
    run: LoggedRun, log_format: Format, first: int, last: int, steps: str
) -> Fingerprint:
    """What the lines of a run's lowest rank show between two iterations of its first epoch."""
    rank = min(record.rank for record in run.records)
    records = [
        record
        for record in run.first_epoch
        if record.rank == rank and first <= record.iteration <= last
    ]
    finest = _STEP_OF_UNIX if log_format.clock is UNIX else _STEP
    stamped = [record for record in records if record.time is not None]
    durations = [
        round(((after.time or 0.0) - (before.time or 0.0)) / max(before.tick, finest))
        for before, after in pairwise(stamped)
    ] or [round((record.duration or 0.0) / max(record.tick, finest)) for record in records[1:]]
    times = [record.time if record.stamp is None else record.stamp for record in records]
    dated = [time for time in times if time is not None and time >= _DATED]
    is_dated = len(dated) == len(times) > 1
    content: list[object] = [record.text for record in records]
    if len(set(durations)) >= _FEWEST:
        content = [*durations]
    elif is_dated and any(time % 1 for time in dated):  # finer than seconds
        content = [*dated]
    iterations = [record.iteration for record in records]
    return Fingerprint(
        digest=sha256(repr((iterations, content)).encode()).hexdigest(),
        span=(min(dated), max(dated)) if is_dated else None,
        step_times=steps,
    )


def _of_all_ranks(measured: Measurement, log: LogFile, ends: Ends) -> Measurement:
    """With the wait of the rank that waited longest: all others waited for that one, not for data.

    Rank 0, which logs, waits in the collectives then.
    """
    seconds = measured.seconds
    if measured.waited is None or not seconds or (measured.world_size or 1) == 1:
        return measured
    shares = [waited / seconds for waited in mllog.waits_of_ranks(log, ends)]
    return replace(
        measured, waited=max(share for share in (measured.waited, *shares) if share <= 1)
    )


def _refused(name: str, log_format: str | None, method: Method, why: Refused) -> Measurement:
    """A log without a number."""
    return Measurement(name, log_format, "refused", str(why), code=why.code, method=method.name)


def _measure_together(
    measured: Measurement,
    facts: Facts,
    logs: Mapping[int, LogFile],
    how: tuple[Format, Method, Sources],
    number: int,
) -> Measurement:
    """What the trainers of a run give that keep their own time: the sum of all, or a refusal."""
    log_format, method, sources = how

    def fields_of(rank: int, ends: Ends | None) -> dict[str, Any]:
        asked = replace(method, ends=ends, widest=False) if ends else method
        other, _ = _measure_run(measured.log, runs[rank], log_format, asked, sources)
        if other.status != "ok":
            raise Refused(other.code, f"rank {rank}: {other.reason}")
        return vars(other)

    try:
        if not facts.get("together"):
            why = "ranks write lines of their own, and the log does not say `together`"
            raise Refused("trainers", why)
        if number > 1:
            why = "runs of trainers that keep their own time lie in one log; allowed: one"
            raise Refused("trainers", why)
        runs = runs_of_ranks(logs, log_format, int(facts.need("world_size")))
        return replace(measured, **summed(runs, fields_of))
    except Refused as refusal:
        refused = replace(measured, status="refused", throughput=None)
        return replace(refused, code=refusal.code, reason=str(refusal))


def _runs(log: LogFile, log_format: Format, method: Method) -> Iterable[LoggedRun]:
    if method.name == "window":
        last = inf if method.widest else method.ends_in(log_format)[0][1]
        return training_runs(log, log_format, last)
    run = whole_log(log, log_format)
    return [run] if run else []


def _measure_run(
    name: str, run: LoggedRun, log_format: Format, method: Method, sources: Sources
) -> tuple[Measurement, Facts]:
    facts = Facts(accumulates=Prints.STEPS in log_format.prints)
    values: dict[str, Any] = {"method": method.name, "unit": log_format.unit, **printed(run)}
    if method.name == "window" and not method.widest:
        values["first"], values["last"] = method.ends_in(log_format)[0]
    try:
        _gather(facts, run, sources, method)
        check_complete(run, facts)
        workload = facts.get("workload")
        further = further_count(method.unit, workload, log_format.unit)
        values["unit"] = (
            per_second(further) if further else log_format.unit or unit_of(workload)
        )  # even if what follows refuses
        if method.name == "published":
            values |= _published(run, log_format, facts, further)
        else:
            counted = _in_tokens(facts) if further == "tokens" else facts
            try:
                warmup = (method.window or Window()).warmup
                best, known = widest(run, log_format, counted, warmup, further)
                values["widest"] = best["first"], best["last"]
            except (Refused, ArithmeticError):
                if method.widest:
                    raise
            if method.widest:
                facts = known if counted is facts else facts
                values |= best
            else:
                values |= by_window(run, log_format, method.ends_in(log_format), counted, further)
        values["status"] = "ok"
    except Refused as refusal:
        values |= {"status": "refused", "code": refusal.code, "reason": str(refusal)}
    except ArithmeticError as error:
        why = f"no throughput follows from its numbers: {error}"
        values |= {"status": "refused", "code": "impossible", "reason": why}
    names: tuple[FactName, ...] = ("global_batch", "world_size", "start_loss")
    values |= {name: facts.get(name) for name in names}
    values["sources"] = facts.sources()
    if log_format.system:  # our own runs end after so many iterations, and train to no target
        values["time_to_train"] = run.time_to_train
    return Measurement(name, log_format.name, **values), facts


def _gather(facts: Facts, run: LoggedRun, sources: Sources, method: Method) -> None:
    if run.overflow and not method.widest:
        raise Refused(
            "too-many-lines",
            f"it prints more than {MOST_RECORDS} lines up to the window's end: "
            "choose a nearer one with --window FIRST:LAST",
        )
    for source, known in ((LOG, run.facts), *sources):
        facts.add(source, known)
    if facts.get("forward_only"):
        why = "the log says that its run trains nothing: it runs forward only"
        raise Refused("no-training", why)
    facts.settle()


def _in_tokens(facts: Facts) -> Facts:
    """The facts by which tokens are counted; if nothing says what a sample is, a token is one."""
    known = facts.get("global_batch") or facts.get("sample_tokens") or facts.get("batch_size")
    if known or not facts.get("step_tokens"):
        return facts
    return deepcopy(facts).add("--unit tokens", [("sample_tokens", 1)])


def _published(
    run: LoggedRun, log_format: Format, facts: Facts, further: str | None
) -> dict[str, Any]:
    if log_format.published is None:
        raise Refused("method", f"no extractor was published for {log_format.name}")
    if further is not None:
        raise Refused("method", f"the published method does not count {further}")
    estimate = log_format.published(run.records, facts)
    if not SLOWEST <= estimate.throughput <= FASTEST:
        raise Refused("impossible", f"the published method gives {estimate.throughput:g}")
    rank = min(record.rank for record in run.records)
    lines = [record for record in run.records if record.rank == rank]
    places = [(record.epoch, record.iteration) for record in lines]
    if places == sorted(set(places)) and lines[0].time is not None:
        step_samples(intervals(lines, log_format), log_format, facts)
    values = estimate._asdict()
    if not estimate.unit:
        del values["unit"]
    return values
