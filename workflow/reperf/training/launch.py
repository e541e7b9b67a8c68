"""Start a command, keep what it says, and leave no process of it behind.

Processes that hang are distributed training's usual failure, so every launch has a time limit,
ends with its whole process tree, and knows which rank was last heard of.
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from reperf.errors import ReperfError
from reperf.records import LastHeard

STEP_MARK = b":::MLLOG "
_RANK_LINE = re.compile(rb"\brank (\d+): (?:iteration (\d+))?")
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.1


@dataclass
class Outcome:
    """How a launch ended."""

    exit_code: int | None = None
    """The command's own; negative for a signal, None if the launch had to end it."""
    timed_out: bool = False
    stopped: str = ""
    """What ended the launch from outside: a signal, or that nobody waits for it any more."""
    out_of_memory_kills: int = 0
    """Processes that the kernel killed on this machine for want of memory meanwhile."""
    seconds: float = 0.0
    last_heard: tuple[LastHeard, ...] = ()


@dataclass
class _Listener:
    """Copies a command's output into the log, and notes each rank's last sign of life."""

    log: IO[bytes]
    started: float
    heard: dict[int, LastHeard] = field(default_factory=dict)
    trouble: OSError | None = None

    def listen(self, lines: Iterable[bytes]) -> None:
        try:
            for line in lines:
                # A launcher's label before a step line would only be in the way of its readers.
                start = max(line.find(STEP_MARK), 0)
                self.log.write(line[start:])
                self._note(line[start:])
        except OSError as error:
            self.trouble = error

    def _note(self, line: bytes) -> None:
        rank, iteration = None, None
        if line.startswith(STEP_MARK):
            rank, iteration = 0, _iteration_of(line)
        elif found := _RANK_LINE.search(line):
            rank = int(found[1])
            iteration = int(found[2]) if found[2] else None
        if rank is None:
            return
        if iteration is None and rank in self.heard:
            iteration = self.heard[rank].iteration
        self.heard[rank] = LastHeard(
            rank=rank, iteration=iteration, seconds=round(time.monotonic() - self.started, 3)
        )


def _iteration_of(line: bytes) -> int | None:
    try:
        value = json.loads(line[len(STEP_MARK) :])["value"]
        return value.get("iteration") if isinstance(value, dict) else None
    except (ValueError, KeyError):
        return None


def launch(
    command: Sequence[str],
    *,
    log: Path,
    time_limit: float,
    environment: Mapping[str, str],
    lines: Callable[[IO[bytes]], Iterable[bytes]] = iter,
    seconds_to_end: float = 0,
) -> Outcome:
    """Run a command to its end, or end it.

    Args:
        command: the program and its arguments.
        log: file that takes all that the command's processes print.
        time_limit: seconds after which the whole process tree is killed.
        environment: the command's environment variables.
        lines: takes the lines of the log out of what the command prints.
        seconds_to_end: how long the command, told to end by SIGTERM, may take before it is killed:
            none, unless it has processes to end on other machines.

    Returns:
        The outcome; whatever it is, no process of the command is left.

    Raises:
        ReperfError: the log cannot be written, for example because no space is left.
    """
    _adopt_orphans()
    keeper = _Keeper()
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
        listener = _Listener(stream, started)
        ear = threading.Thread(target=listener.listen, args=(lines(process.stdout),), daemon=True)
        ear.start()
        try:
            while outcome.exit_code is None and not (outcome.timed_out or outcome.stopped):
                if listener.trouble:
                    raise ReperfError(f"{log}: cannot be written: {listener.trouble.strerror}")
                try:
                    outcome.exit_code = process.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    outcome.timed_out = time.monotonic() - started > time_limit
                    if keeper.is_gone():
                        outcome.stopped = "the workflow is gone"
        finally:
            if outcome.exit_code is None and seconds_to_end:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(seconds_to_end)
            _kill_descendants()
            ear.join(timeout=10)
    outcome.seconds = time.monotonic() - started
    outcome.out_of_memory_kills = _out_of_memory_kills() - kills
    outcome.last_heard = tuple(listener.heard[rank] for rank in sorted(listener.heard))
    return outcome


@contextmanager
def _noting_signals(outcome: Outcome) -> Iterator[None]:
    """Note the signals that ask this process to end, so that it ends the launch first."""

    def note(number: int, _frame: object) -> None:
        outcome.stopped = signal.Signals(number).name

    former = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class _Keeper:
    """The Snakemake process that waits for this one, if there is one."""

    def __init__(self) -> None:
        self._process = next(filter(_is_snakemake, psutil.Process().parents()), None)

    def is_gone(self) -> bool:
        if self._process is None:
            return False
        try:
            return self._process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True


def _is_snakemake(process: psutil.Process) -> bool:
    """Whether a process is `snakemake ...` or `python -m snakemake ...`, and not a script of it."""
    return any(Path(word).name == "snakemake" for word in process.cmdline()[:3])


def _adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none gets lost.

    Launchers start ranks in sessions of their own, which a process group does not reach.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_descendants() -> None:
    """Kill every process below this one, those that appear meanwhile too.

    A list of them misses one whose parent ends while the list is made. It is this process's child
    then, and that there is none any more is the kernel's word.
    """
    with suppress(ChildProcessError):
        while True:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)


def _out_of_memory_kills() -> int:
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
