"""What people see while a workflow runs: which run of how many, its result, how long is left."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TextIO

from reperf.errors import ReperfError
from reperf.layout import RUN_LOG, RUN_RECORD, SUITE_PLAN
from reperf.plans.plan_files import SuitePlan
from reperf.records.run_record import LARGEST_RECORD
from reperf.text import count, printable, printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

    from reperf.measuring.measure import Method

LONGEST = 1000  # characters of a line; the log holds longer ones
_TAIL = 64 * 1024

State = tuple[int, int] | None
"""A file's time stamp in ns and its size in bytes, which differ once it is written again."""


def of_run(record: Path, log: Path) -> tuple[bool, str]:
    """Whether a run that has ended is a result, and its throughput or its status, in words."""
    try:
        with record.open(encoding="utf-8") as stream:
            content = json.loads(stream.read(LARGEST_RECORD))
        status, reason, seconds = content["status"], content["reason"], float(content["seconds"])
        took = f" ({duration(seconds)})" if seconds else ""
        if status == "ok":
            gave, good = _throughput(log, _method(content["run"]["suite"]))
            return good, gave + took
        return status in ("oom", "unsupported"), one_line(f"{status}: {reason}") + took
    except (ReperfError, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        return False, one_line(f"its record cannot be read: {error}")


@cache
def _method(suite: str) -> "Method":
    """How a suite is measured: its plan is written before the first job starts."""
    from reperf.measuring.measure import Method  # noqa: PLC0415 - a dry run does without

    suite_of_plan = SuitePlan.read(SUITE_PLAN.format(suite=suite)).suite
    return Method(window=suite_of_plan.window, unit=suite_of_plan.unit)


def _throughput(log: Path, method: "Method") -> tuple[str, bool]:
    from reperf.logs.formats import mllog  # noqa: PLC0415 - a dry run does without
    from reperf.measuring.measure import measure_log  # noqa: PLC0415

    with log.open("rb") as stream:
        measured = [*measure_log(str(log), stream, method, mllog.FORMAT)]
    if len(measured) != 1:
        return f"no throughput: {len(measured)} runs are in its log", False
    ((result, *_),) = measured
    if result.throughput is None:
        return one_line(f"no throughput: {result.reason}"), False
    return f"{result.throughput:,.2f} {result.unit}", True


def state_of(file: Path) -> State:
    """A file's State, to see later whether it was written again; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def reason_in(log: Path, before: State) -> str:
    """Why a job failed, by its log: the line for people, else the last; "" if it wrote nothing."""
    if state_of(log) in (None, before):
        return ""
    lines = tail(log)
    for_people = [line for line in lines if line.startswith("reperf: ")]
    return one_line((for_people or lines or [""])[-1].removeprefix("reperf: "))


def tail(log: Path) -> list[str]:
    """The last lines of a log that are not blank; none if it cannot be read."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL))
            text = stream.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def duration(seconds: float) -> str:
    """A time as you would say it: "3.2 s", "45 s", "12 min", "1 h 20 min"."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def about(seconds: float) -> str:
    """A time that is known no better than to the second."""
    return duration(seconds) if seconds >= 10 else f"{max(1, round(seconds))} s"


def one_line(text: str) -> str:
    """The text as one printable line, cut if it is longer than LONGEST."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} .."


RUN = "train"  # the rule that makes runs
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

    What counts is how often one ends, also of many at once in a queue; time between runs does not.
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


_MOST_JOBS = 6
_SECONDS_BETWEEN_LOOKS = 1


class PlainLines:
    """Lines without escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def say(self, line: Line) -> None:
        """Show a line for good."""
        try:
            if self._stream:
                print(printable_lines(line.text), file=self._stream, flush=True)
        except (OSError, ValueError):
            self._stream = None  # its reader has gone

    def close(self) -> None:
        """Show no more than has been said."""


class LiveDisplay:
    """The same lines, and below them the work in progress, drawn once a second.

    The cursor stays visible: even a workflow that is killed leaves the terminal as it was.
    """

    def __init__(self, stream: TextIO, progress: Progress) -> None:
        from rich.console import Console  # noqa: PLC0415 - a tenth of a second, for terminals only
        from rich.live import Live  # noqa: PLC0415

        class OpenConsole(Console):
            def show_cursor(self, show: bool = True) -> bool:
                return False

        self._progress = progress
        self._console = OpenConsole(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=1 / _SECONDS_BETWEEN_LOOKS,
            transient=True,
        )
        self._live.start()

    def say(self, line: Line) -> None:
        from rich.text import Text  # noqa: PLC0415

        with suppress(OSError, ValueError):
            text = Text(printable_lines(line.text), style="red" if line.bad else "")
            self._console.print(text, soft_wrap=True)

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._live.stop()

    def _draw(self) -> "ConsoleRenderable":
        from rich.console import Group  # noqa: PLC0415
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        done, left = self._progress.head()
        width, height = self._console.size
        lines = [
            Text(f"  {line}", no_wrap=True, overflow="crop")
            for line in self._progress.doing(max(1, min(_MOST_JOBS, height - 3)))
        ]
        if not done:
            return Group(*lines)
        room = width - len(done) - len(left) - 4
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(self._progress.runs, self._progress.ended, width=min(40, room))
        head.add_row(done, *([bar] if room >= 5 else []), left)
        return Group(head, *lines)


class FullLog:
    """The full output in one file: Snakemake's, and that of the programs that it starts.

    The two output streams, which programs inherit, are redirected to the file, while Python's own
    objects for them keep writing to where they did.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: IO[bytes] | None = path.open("ab", buffering=0)
        self._turned: list[tuple[str, TextIO, TextIO]] = []
        for name in ("stdout", "stderr"):
            self._turn(name)

    def write(self, text: str) -> None:
        """Add a piece of text; a full disk does not end a workflow."""
        with suppress(OSError, ValueError):
            if self._file:
                self._file.write(text.encode("utf-8", "backslashreplace"))

    def _turn(self, name: str) -> None:
        stream = getattr(sys, name)
        assert self._file
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
            number = stream.fileno()
            screen = open(  # noqa: PTH123, SIM115 - closed when it is turned back
                os.dup(number), "w", encoding=stream.encoding, errors=stream.errors, buffering=1
            )
            os.dup2(self._file.fileno(), number)
            setattr(sys, name, screen)
            self._turned.append((name, stream, screen))

    def close(self) -> None:
        """Give the streams back."""
        for name, stream, screen in self._turned:
            with suppress(OSError, ValueError):
                screen.flush()
            os.dup2(screen.fileno(), stream.fileno())
            if getattr(sys, name) is screen:
                setattr(sys, name, stream)
            with suppress(OSError, ValueError):
                screen.close()
        self._turned = []
        if self._file:
            self._file.close()
            self._file = None


def screen(progress: Progress, *, color: bool) -> PlainLines | LiveDisplay:
    """A live display on a terminal that understands escapes, plain lines elsewhere."""
    dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream and stream.isatty()]
    if color and not dumb and len(streams) == 2:
        return LiveDisplay(sys.stderr, progress)
    return PlainLines(sys.stderr)
