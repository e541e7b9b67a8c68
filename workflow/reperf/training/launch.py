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

from reperf.building.keeper import adopt_orphans, kill_descendants
from reperf.errors import ReperfError
from reperf.logs import events
from reperf.logs.scan import after_labels
from reperf.training.record import LastHeard

STEP_MARK = b":::MLLOG "
LONGEST_PIECE = 1 << 20
"""Bytes of a line held in memory at once; step lines are shorter."""
# No rank or iteration has more digits.
# A rank that waits for another says nothing new of itself.
_RANK_LINE = re.compile(
    rb"\brank (\d{1,9})(?: \(stage \d{1,9}\))?: (?!waits for )(?:iteration (\d{1,15})\b)?"
)
_POLL_SECONDS = 0.1


@dataclass
class Outcome:
    """How a launch ended."""

    exit_code: int | None = None
    """The command's own; negative after a signal, None if the launch had to end it."""
    timed_out: bool = False
    stopped: str = ""
    """The signal that ended the launch from outside, if one did."""
    out_of_memory_kills: int = 0
    """Processes on this machine that the kernel killed meanwhile for lack of memory."""
    seconds: float = 0.0
    last_heard: tuple[LastHeard, ...] = ()


@dataclass
class _Listener:
    """Copies a command's output to the log, and notes each rank's last sign of life.

    Everything is kept, whatever it is; but only what can be a step of one of the ranks counts as
    one.
    """

    log: IO[bytes]
    started: float
    world_size: int
    heard: dict[int, LastHeard] = field(default_factory=dict)
    trouble: OSError | None = None

    def listen(self, pieces: Iterable[bytes]) -> None:
        begins_line = True
        try:
            for piece in pieces:
                line = piece
                if begins_line and (start := piece.find(STEP_MARK)) > 0:
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
        rank, iteration = None, None
        if line.startswith(STEP_MARK):
            rank, iteration = 0, _iteration_of(line)
        elif found := _RANK_LINE.search(line):
            rank = int(found[1])
            iteration = int(found[2]) if found[2] else None
        if rank is None or rank >= self.world_size:
            return
        if iteration is None and rank in self.heard:
            iteration = self.heard[rank].iteration
        self.heard[rank] = LastHeard(
            rank=rank, iteration=iteration, seconds=round(time.monotonic() - self.started, 3)
        )


def _iteration_of(line: bytes) -> int | None:
    """The iteration of a step line; None if it has none, or none that can be read."""
    found = events.EVENT.match(line)
    value = events.read_event(found).get("value") if found else None
    iteration = value.get("iteration") if isinstance(value, dict) else None
    return iteration if type(iteration) is int and 0 <= iteration < 10**15 else None


def pieces(output: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; a line longer than LONGEST_PIECE comes in several pieces."""
    return iter(partial(output.readline, LONGEST_PIECE), b"")


def launch(
    command: Sequence[str],
    *,
    log: Path,
    time_limit: float,
    world_size: int,
    environment: Mapping[str, str],
    lines: Callable[[Iterable[bytes]], Iterable[bytes]] = iter,
    seconds_to_end: float = 0,
) -> Outcome:
    """Run a command to its end, or end it.

    Args:
        command: the program and its arguments.
        log: file for everything that the command's processes print.
        time_limit: seconds after which the whole process tree is killed.
        world_size: number of ranks to listen for.
        environment: the command's environment variables.
        lines: makes the lines of the log from the pieces that the command prints.
        seconds_to_end: how long the command may take after SIGTERM before it is killed; 0 unless
            it has processes to end on other machines.

    Returns:
        The outcome; no process of the command is left, whatever it is.

    Raises:
        ReperfError: the log cannot be written, for example because no space is left.
    """
    adopt_orphans()
    started = time.monotonic()
    kills = _out_of_memory_kills()
    outcome = Outcome()
    with log.open("wb", buffering=0) as stream, _noting_signals(outcome):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        assert process.stdout
        listener = _Listener(stream, started, world_size)
        said = lines(pieces(process.stdout))
        ear = threading.Thread(target=listener.listen, args=(said,), daemon=True)
        ear.start()
        try:
            while outcome.exit_code is None and not (outcome.timed_out or outcome.stopped):
                if listener.trouble:
                    raise ReperfError(f"{log}: cannot be written: {listener.trouble.strerror}")
                try:
                    outcome.exit_code = process.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    outcome.timed_out = time.monotonic() - started > time_limit
        finally:
            if outcome.exit_code is None and seconds_to_end:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(seconds_to_end)
            kill_descendants()
            ear.join(timeout=10)
    outcome.seconds = time.monotonic() - started
    outcome.out_of_memory_kills = _out_of_memory_kills() - kills
    outcome.last_heard = tuple(listener.heard[rank] for rank in sorted(listener.heard))
    return outcome


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
