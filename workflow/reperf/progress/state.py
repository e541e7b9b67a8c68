"""What is planned, what is done and what is in progress; and the line that each event is worth."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reperf.layout import RUN_LOG, RUN_RECORD
from reperf.progress.outcome import State, about, of_run, one_line, reason_in, state_of, tail
from reperf.text import count

RUN = "train"
"""The rule that makes runs."""
LARGER = ("environment", "convert", "largest", "report")
"""Rules whose beginning is announced, on a terminal or not."""


class Line(NamedTuple):
    """A line to show."""

    text: str
    bad: bool = False


@dataclass(frozen=True)
class Job:
    """A step in progress."""

    rule: str
    title: str
    log: Path | None
    log_before: State
    outputs: tuple[Path, ...]
    started: float

    @property
    def is_run(self) -> bool:
        return self.rule == RUN


class Pace:
    """How long the remaining runs take: the time with a run in progress, by the runs that ended.

    That works for runs one after the other and for many at once in a queue: what counts is how
    often one ends. Time to build environments between runs does not count.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._busy = 0.0
        self._busy_at_last_end = 0.0
        self._running = 0
        self._ended = 0

    def started(self, now: float) -> None:
        """A run has begun at `now`, in seconds."""
        if self._running == 0:
            self._since = now
        self._running += 1

    def ended(self, now: float, *, counts: bool = True) -> None:
        """A run has ended; one that is tried again does not count."""
        self._running -= 1
        if counts:
            self._ended += 1
            self._busy_at_last_end = self._busy_until(now)
        if self._running == 0:
            self._busy, self._since = self._busy_until(now), None

    def left(self, runs: int, now: float) -> float | None:
        """Seconds that so many runs will take; None before the first one has ended."""
        if not self._ended:
            return None
        each = self._busy_at_last_end / self._ended
        since_last_end = self._busy_until(now) - self._busy_at_last_end
        return max(0.0, each * runs - since_last_end)

    def _busy_until(self, now: float) -> float:
        return self._busy + (now - self._since if self._since is not None else 0.0)


class Progress:
    """The state of one call. Times are seconds of the given clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pace = Pace()
        self._jobs: dict[int, Job] = {}
        self._known: set[int] = set()
        self._given_up: set[int] = set()
        self._ended = 0
        self.runs = 0
        self.steps = 0

    def planned(self, counts: Mapping[str, int]) -> Line:
        """The plan is made: jobs of each rule, and their sum as `total`."""
        self.runs = counts.get(RUN, 0)
        self.steps = counts.get("total", 0) - self.runs - counts.get("all", 0)
        runs = [count(self.runs, "run")] * bool(self.runs)
        steps = [count(self.steps, "other step" if runs else "step")] * bool(self.steps)
        return Line(f"{' and '.join(runs + steps) or 'nothing'} to do")

    @property
    def ended(self) -> int:
        """Runs that have ended and are not being tried again."""
        return self._ended + len(self._given_up)

    def started(
        self,
        number: int,
        *,
        rule: str,
        message: str,
        wildcards: Mapping[str, str],
        logs: Sequence[str],
        outputs: Sequence[str],
    ) -> Line | None:
        """A job has begun; long steps get a line, and so does another try of a run."""
        log = Path(logs[0]) if logs else None
        title = one_line(message or rule)
        if rule == RUN:
            title = one_line(
                "{suite} {entry} {topology}, repeat {repeat}".format_map(dict(wildcards))
            )
        before = state_of(log) if log else None
        job = Job(rule, title, log, before, tuple(map(Path, outputs)), self._clock())
        again = number in self._known
        if number in self._jobs:  # its end went unreported, because it lacked an output
            self._leave(number)
        self._jobs[number] = job
        self._known.add(number)
        if job.is_run:
            self._given_up.discard(number)
            self._pace.started(job.started)
        if again:
            return Line(f"{self._named(job)}: tried again")
        return Line(f"{title}; its log: {log}") if rule in LARGER else None

    def finished(self, number: int) -> Line | None:
        """A job has ended well; a run gets a line with its result."""
        job = self._jobs.pop(number, None)
        if job is None or not job.is_run:
            return None
        named = self._named(job)
        self._ended += 1
        self._pace.ended(self._clock())
        files = {file.name: file for file in job.outputs}
        good, gave = of_run(files[RUN_RECORD], files[RUN_LOG])
        where = "" if good else f"; its log: {files[RUN_LOG]}"
        return Line(f"{named}: {gave}{where}{self._left('; ')}", bad=not good)

    def failed(
        self, number: int, rule: str, logs: Sequence[str], message: str, by_slurm: str = ""
    ) -> Line:
        """A job has failed, perhaps to be tried again.

        Args:
            logs: the job's own first, then those of what ran it.
            message: what Snakemake knows, used if the job itself left no reason.
            by_slurm: how Slurm ended it, if it was Slurm.
        """
        job = self._leave(number)
        log = Path(logs[0]) if logs else None
        reason = reason_in(log, job.log_before) if log and job else ""
        reason = reason or one_line(message)
        reason = "; ".join(filter(None, (one_line(by_slurm), reason))) or "it gave no reason"
        named = rule
        if job is not None:
            named = self._named(job)
            if job.is_run:
                self._given_up.add(number)
        where = f" ({', '.join(map(one_line, logs))})" if logs else ""
        return Line(f"{named}: failed: {reason}{where}", bad=True)

    def _leave(self, number: int) -> Job | None:
        job = self._jobs.pop(number, None)
        if job is not None and job.is_run:
            self._pace.ended(self._clock(), counts=False)
        return job

    def head(self) -> tuple[str, str]:
        """Which run of how many, and how long is left: "7 of 18 runs", "about 2 min left"."""
        return (f"{self.ended} of {self.runs} runs" if self.runs else "", self._left(""))

    def doing(self, most: int) -> list[str]:
        """The work in progress, in at most `most` lines, the newest first."""
        now = self._clock()
        jobs = list(self._jobs.values())[::-1]
        shown = jobs if len(jobs) <= most else jobs[: max(0, most - 1)]
        lines = [f"{job.title}: {self._far(job)}{about(now - job.started)}" for job in shown]
        rest = len(jobs) - len(shown)
        return [*lines, f"and {rest} more"] if rest and most else lines

    def _far(self, job: Job) -> str:
        """How far a step has got, by the last line of its log."""
        if job.is_run or job.log is None or state_of(job.log) in (None, job.log_before):
            return ""
        last = tail(job.log)[-1:]
        return f"{one_line(last[0])}; " if last else ""

    def _named(self, job: Job) -> str:
        return f"run {self.ended + 1} of {self.runs}: {job.title}" if job.is_run else job.title

    def _left(self, before: str) -> str:
        runs = self.runs - self.ended
        seconds = self._pace.left(runs, self._clock()) if runs > 0 else None
        return "" if seconds is None else f"{before}about {about(seconds)} left"
