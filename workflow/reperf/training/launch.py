"""Start a command, keep what it prints, and leave none of its processes behind.

Hanging processes are the usual failure of distributed training, so every launch has a time limit,
ends with its whole process tree, and knows which rank was last heard of.
"""

import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from trainers.contract.waiting import LONG, QUIET

from reperf.building.process_guard import adopt_orphans, kill_descendants
from reperf.errors import ReperfError
from reperf.logs.events import EVENT, MARK, read_event
from reperf.logs.formats.mllog import rank_of
from reperf.logs.scan import after_labels
from reperf.records.run_record import LastHeard

LONGEST_PIECE = 1 << 20  # bytes of a line held in memory at once; step lines are shorter
# No rank or iteration has more digits.
# A rank that waits for another says nothing new of itself.
_RANK_LINE = re.compile(
    rb"\b(rank|server) (\d{1,9})(?: \(stage \d{1,9}\))?: (?!waits for )"
    rb"(?:iteration (\d{1,15})\b|(done)[\r\n]|%s (\d{1,9}) s\b)?" % QUIET.encode()
)
_POLL_SECONDS = 0.1
_SECONDS_TO_SEE = 3.0
"""How long servers may take to show that they ended first, where trainers fail: these know of a
server's end at once, its launcher a moment later, and a busy machine later still."""
_SECONDS_TO_END_SERVERS = 5.0


@dataclass(frozen=True)
class Command:
    """A program with its arguments, and all of its environment variables."""

    words: Sequence[str]
    environment: Mapping[str, str]
    clean_up: Sequence[str] = ()
    """What removes its container once all processes here were killed; empty without one."""


@dataclass
class Outcome:
    """How a launch ended."""

    exit_code: int | None = None
    """The trainers' command's own; negative after a signal, None if the launch had to end it."""
    servers_ended: int | None = None
    """That of the servers' command, if it ended before the trainers' did; None: it did not."""
    timed_out: bool = False
    stopped: str = ""  # the signal that ended the launch from outside, if one did
    out_of_memory_kills: int = 0
    """Processes on this machine that the kernel killed meanwhile for lack of memory."""
    seconds: float = 0.0
    seconds_to_print: float | None = None
    """From the start until a rank first printed an iteration; None: none did."""
    last_heard: dict[int, LastHeard] = field(default_factory=dict)  # by rank
    servers_heard: dict[int, LastHeard] = field(default_factory=dict)  # by number
    done: set[int] = field(default_factory=set)
    """The ranks that said that they have come to their end."""
    silent: frozenset[int] = frozenset()
    """The ranks that no longer said that they live at the end, where others did."""


@dataclass
class _Listener:
    """Copies what commands print to the log, and notes each rank's and server's last sign."""

    log: IO[bytes]
    outcome: Outcome
    started: float
    world_size: int
    servers: int = 0
    quiet: dict[int, int] = field(default_factory=dict)
    trouble: OSError | None = None

    def listen(self, pieces: Iterable[bytes]) -> None:
        begins_line = True
        try:
            for piece in pieces:
                line = piece
                if begins_line and (start := piece.find(MARK)) > 0:
                    # A launcher's label before a step would only hinder readers; anything else was
                    # written by another process that did not end its line.
                    if after_labels(piece) < start:
                        self.log.write(piece[:start] + b"\n")
                    line = piece[start:]
                self.log.write(line)
                if begins_line:
                    self._note(line)
                begins_line = line.endswith(b"\n")
        except OSError as error:
            self.trouble = error

    def _note(self, line: bytes) -> None:
        outcome, of_rank, quiet, done = self.outcome, True, None, None
        if line.startswith(MARK):
            rank, iteration = _step_of(line)
        elif match := _RANK_LINE.search(line):
            of_rank, rank, done = match[1] == b"rank", int(match[2]), match[4]
            iteration, quiet = (int(digits) if digits else None for digits in (match[3], match[5]))
        else:
            return
        if rank >= (self.world_size if of_rank else self.servers):
            return
        if quiet is not None:
            self.quiet[rank] = quiet
            return
        heard = outcome.last_heard if of_rank else outcome.servers_heard
        if iteration is None and rank in heard:
            iteration = heard[rank].iteration
        seconds = round(time.monotonic() - self.started, 3)
        heard[rank] = LastHeard(rank=rank, iteration=iteration, seconds=seconds)
        if of_rank:
            self.quiet.pop(rank, None)
            outcome.done.update([rank] if done else ())
            if outcome.seconds_to_print is None and iteration:
                outcome.seconds_to_print = seconds

    def silent(self) -> frozenset[int]:
        """The ranks that should have said by now that they live, if others have.

        They say it LONG seconds after their last news, then each time twice as long after it.
        """
        now, heard = time.monotonic() - self.started, self.outcome.last_heard
        overdue = {
            rank
            for rank, last in heard.items()
            if now - last.seconds > max(LONG, 2 * self.quiet.get(rank, 0)) + LONG
        }
        return frozenset(overdue - self.outcome.done if len(overdue) < len(heard) else ())


def _step_of(line: bytes) -> tuple[int, int | None]:
    """The rank and the iteration of a step line; rank 0 and None if it does not say them."""
    match = EVENT.match(line)
    event = read_event(match) if match else {}
    value = event.get("value")
    iteration = value.get("iteration") if isinstance(value, dict) else None
    is_count = type(iteration) is int and 0 <= iteration < 10**15
    return rank_of(event), iteration if is_count else None


def pieces(output: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; a line longer than LONGEST_PIECE comes in several pieces."""
    return iter(partial(output.readline, LONGEST_PIECE), b"")


def launch(
    trainers: Command,
    servers: Command | None = None,
    *,
    log: Path,
    time_limit: float,
    world_size: int,
    servers_in_all: int = 0,
    lines: Callable[[Iterable[bytes]], Iterable[bytes]] = iter,
    seconds_to_end: float = 0,
) -> Outcome:
    """Run a command to its end, or end it; no process of it is left then, whatever happens.

    Servers start first, and the trainers once each server has been heard of. A server that ends
    before the trainers ends the run; after their end the launch ends the servers.

    Args:
        time_limit: seconds after which the whole process tree is killed.
        world_size, servers_in_all: how many ranks and servers to listen for.
        lines: makes the lines of the log from the pieces that a command prints.
        seconds_to_end: how long a command may take after SIGTERM before it is killed; 0 unless it
            has processes to end on other machines.
    """
    adopt_orphans()
    started = time.monotonic()
    kills = _out_of_memory_kills()
    outcome = Outcome()
    with log.open("wb", buffering=0) as stream, _noting_signals(outcome):
        listener = _Listener(stream, outcome, started, world_size, servers_in_all)
        beside: _Running | None = None
        running: _Running | None = None
        try:
            if servers is not None:
                beside = _Running(servers, listener, lines)
            while not _is_over(outcome, listener, log, started + time_limit):
                if beside is not None:
                    outcome.servers_ended = beside.ended()
                if running is not None:
                    outcome.exit_code = running.ended(_POLL_SECONDS)
                elif len(outcome.servers_heard) == servers_in_all:
                    running = _Running(trainers, listener, lines)
                else:
                    time.sleep(_POLL_SECONDS)
            outcome.silent = listener.silent()
            if beside is not None and outcome.exit_code and outcome.servers_ended is None:
                outcome.servers_ended = beside.ended(max(_SECONDS_TO_SEE, seconds_to_end / 4))
        finally:
            both = [command for command in (running, beside) if command]
            alive = [command for command in both if command.ended() is None]
            only_servers = running and outcome.exit_code is not None and alive == [beside]
            if running and only_servers:
                # What servers say of their end comes after all that the trainers have said.
                running.ear.join(_SECONDS_TO_SEE)
            if seconds_to_end or only_servers:
                _end_all(alive, seconds_to_end or _SECONDS_TO_END_SERVERS)
            kill_descendants()
            for command in both:
                command.ear.join(timeout=10)
    outcome.seconds = time.monotonic() - started
    outcome.out_of_memory_kills = _out_of_memory_kills() - kills
    return outcome


class _Running:
    """A command that has been started, and what listens to it."""

    def __init__(
        self,
        command: Command,
        listener: _Listener,
        lines: Callable[[Iterable[bytes]], Iterable[bytes]],
    ) -> None:
        self.process = subprocess.Popen(
            command.words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=command.environment,
            start_new_session=True,
        )
        assert self.process.stdout
        printed = lines(pieces(self.process.stdout))
        self.ear = threading.Thread(target=listener.listen, args=(printed,), daemon=True)
        self.ear.start()

    def ended(self, seconds: float = 0) -> int | None:
        """Its exit code, if it ends within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None


def _end_all(commands: Sequence[_Running], seconds: float) -> None:
    """Ask commands to end all that they have started, and give them so long."""
    for command in commands:
        command.process.terminate()
    latest = time.monotonic() + seconds
    for command in commands:
        command.ended(max(0.0, latest - time.monotonic()))


def _is_over(outcome: Outcome, listener: _Listener, log: Path, latest: float) -> bool:
    """Whether a launch has come to an end, or must be ended."""
    if listener.trouble:
        raise ReperfError(f"{log}: cannot be written: {listener.trouble.strerror}")
    ended = (outcome.exit_code, outcome.servers_ended) != (None, None)
    outcome.timed_out = not ended and time.monotonic() > latest
    return bool(ended or outcome.timed_out or outcome.stopped)


@contextmanager
def _noting_signals(outcome: Outcome) -> Iterator[None]:
    """Note signals that ask this process to end, so that it can end the launch first."""

    def note(number: int, _frame: object) -> None:
        outcome.stopped = signal.Signals(number).name

    former = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _out_of_memory_kills() -> int:
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
