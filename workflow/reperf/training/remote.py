"""A command on several hosts that ssh, or another command, reaches: what srun is to Slurm.

    python -m reperf.training.remote start [--label] [--run PROCESS] REMOTE HOSTS COMMAND...
    python -m reperf.training.remote keep    # on each host; it reads its orders from standard input

`start` runs where the run is recorded. It reaches each host, passes on what comes back in whole
lines, and ends all hosts at the first bad end. `keep` starts the command on its host, and ends
everything below it at a signal, when its input ends, or SECONDS_OF_SILENCE after the last beat, as
when a cable was pulled. The command, its folder and its environment come by standard input: no list
of processes shows them, and no shell reads them.
"""

import argparse
import fcntl
import json
import os
import queue
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from reperf.building.process_guard import kill_descendants, start_guard
from reperf.building.work_folder import CALL
from reperf.files import try_lock

SECONDS_OF_SILENCE = 30.0
"""Without a beat for so long, a host ends its part of a run."""
SECONDS_TO_END = 12.0
"""How long hosts may take to end their parts, after the first bad end."""
SECONDS_TO_ANSWER = 60.0
"""How long it may take until a host's keeper runs."""
IN_USE = 75
"""The exit status of a host on which another run trains (sysexits.h: a temporary failure)."""
_SECONDS_BETWEEN_BEATS = 5.0
_SECONDS_BETWEEN_LOOKS = 0.5
_LONGEST_LINE = 1 << 20
_NOBODY = -1
_NOT_STARTED = 127
_NOT_REACHED = 255
"""The exit status of ssh itself."""
_SSH_OPTIONS = (
    *("-T", "-a", "-x", "-oBatchMode=yes", "-oConnectTimeout=10", "-oLogLevel=ERROR"),
    # sshd looks for no dead clients by default; a shared connection ends with whoever opened it.
    *("-oServerAliveInterval=5", "-oServerAliveCountMax=4", "-oControlPath=none"),
)
_OF_A_SESSION = ("DBUS_", "DISPLAY", "HOSTNAME", "SLURM_", "SSH_", "TMPDIR", "XDG_")
"""How variables begin that mean nothing on another machine."""
_BEGUN = b"reperf begins here\n"
"""A keeper's line before its command's. What a host prints before it, such as the greeting of the
shell's start, is passed on only if the line does not come."""
_RUN = "REPERF_RUN"
"""The environment variable that names the process that starts all programs of a run."""
_WRITING = threading.Lock()


def command_on(
    remote: str, hosts: Sequence[str], command: Sequence[str], *options: str
) -> list[str]:
    """The command that runs another on some hosts.

    Args:
        remote: what reaches a host: `ssh`, or words in which `{host}` may stand.
        hosts: as `remote` knows them; this machine is reached without it.
        command: its words; `{node_rank}` stands for a host's number, from 0, `{host}` for its name.
    """
    start = [sys.executable, "-m", "reperf.training.remote", "start", *options]
    return [*start, remote, ",".join(hosts), *command]


def name_of(host: str) -> str:
    """A host's name in the network, without the user."""
    return host.rpartition("@")[2]


def _filled(word: str, number: int, name: str) -> str:
    """A word of a command with what stands for a host's number and name."""
    of_host = {"{node_rank}": str(number), "{host}": name}
    return re.sub(r"\{node_rank\}|\{host\}", lambda match: of_host[match[0]], word)


def is_here(host: str) -> bool:
    """Whether a name is this machine's: only a machine's own addresses can be bound there."""
    try:
        known = socket.getaddrinfo(name_of(host), 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, _, _, address in known:
        with suppress(OSError), socket.socket(family, kind) as trial:
            trial.bind(address)
            return True
    return False


def reach(remote: str, host: str) -> list[str]:
    """The words that, put before a program's own, run it on a host."""
    words = shlex.split(remote)
    if Path(words[0]).name == "ssh":
        words[1:1] = _SSH_OPTIONS
    if not any("{host}" in word for word in words):
        words.append("{host}")
    return [word.replace("{host}", host) for word in words]


class _Host:
    """One host, its keeper, and the thread that listens to it."""

    def __init__(
        self,
        words: Sequence[str],
        orders: dict[str, Any],
        label: bytes,
        ended: Callable[[int], None],
    ) -> None:
        self._process = subprocess.Popen(
            [*words, sys.executable, "-m", "reperf.training.remote", "keep"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if not label else subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C comes to `start` alone, which ends all
        )
        self._label, self._ended, self.has_begun = label, ended, False
        self.send(json.dumps(orders).encode())
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send the orders, or with an empty line a beat."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Let the keeper end, by the end of its input."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _listen(self) -> None:
        assert self._process.stdout
        greeting = []
        while line := self._process.stdout.readline(_LONGEST_LINE):
            if self.has_begun:
                self._pass_on(line)
            else:
                greeting.append(line)
                self.has_begun = line.endswith(_BEGUN)
        for line in () if self.has_begun else greeting:
            self._pass_on(line)
        self._ended(self._process.wait())

    def _pass_on(self, line: bytes) -> None:
        with suppress(OSError):
            _write(self._label + line.removesuffix(b"\n") + b"\n")


def _write(line: bytes) -> None:
    """Write a whole line: lines of several hosts must not mix."""
    with _WRITING:
        while line:
            line = line[os.write(1, line) :]


def start(
    remote: str, hosts: Sequence[str], command: Sequence[str], *, run: int = 0, label: bool = False
) -> int:
    """Run a command on all hosts to its end, or to the first bad end.

    Args:
        run: the process that starts all programs of a run, which share its hosts; 0: this one.
        label: whether lines begin with the host's number.

    Returns:
        The first bad exit status, or 0; no process of it is left on a host that still answers.
    """
    ends: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()  # a signal may come in `get`
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: ends.put((_NOBODY, -number)))
    # The kernel signals that the process which started this has ended.
    above = os.getppid()
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(_OF_A_SESSION) and k != CALL
    }
    environment.setdefault(_RUN, f"process {run or os.getpid()} on {socket.gethostname()}")
    orders = {"folder": str(Path.cwd()), "environment": environment}
    running: dict[int, _Host] = {}
    for rank, host in enumerate(hosts):
        running[rank] = _Host(
            [] if is_here(host) else reach(remote, host),
            orders | {"command": [_filled(word, rank, name_of(host)) for word in command]},
            b"%d: " % rank if label else b"",
            partial(lambda rank, code: ends.put((rank, code)), rank),
        )
    status, latest, beat = 0, float("inf"), time.monotonic()
    to_answer = beat + SECONDS_TO_ANSWER  # whoever is silent by then was not reached
    while running and time.monotonic() < latest:
        rank, code = _NOBODY, 0
        with suppress(queue.Empty):
            rank, code = ends.get(timeout=_SECONDS_BETWEEN_LOOKS)
        if os.getppid() != above and not status:
            rank, code = _NOBODY, -signal.SIGKILL
        if time.monotonic() > to_answer:
            to_answer = float("inf")
            for late in (rank for rank in running if not running[rank].has_begun):
                ends.put((late, _NOT_REACHED))
                running[late].kill()
        # A host whose input has ended takes no more beats while it ends.
        if not status and time.monotonic() - beat > _SECONDS_BETWEEN_BEATS:
            beat = time.monotonic()
            for running_host in running.values():
                running_host.send(b"")
        running.pop(rank, None)
        if code and not status:
            status, latest = code if code > 0 else 128 - code, time.monotonic() + SECONDS_TO_END
            if rank != _NOBODY and (code < 0 or code == _NOT_REACHED):
                why = f"; {remote} did not reach it, or lost it" if code == _NOT_REACHED else ""
                _write(f"reperf: {hosts[rank]} ended with status {code}{why}\n".encode())
            for running_host in running.values():
                running_host.end()
    for running_host in running.values():
        running_host.kill()
    return status


def keep() -> int:
    """On a host, run what the orders name, and leave nothing of it behind.

    The process guard and the step that it guards are two processes: whichever is killed, the other
    ends the rest.
    """
    orders = json.loads(_first_line())
    os.environ.pop(CALL, None)
    start_guard()
    if user := _lock_host(orders["environment"][_RUN]):
        return _refuse(f"{user} uses it; allowed: one run at a time", IN_USE)
    os.write(1, _BEGUN)
    own = {name: os.environ[name] for name in ("HOSTNAME", "TMPDIR") if name in os.environ}
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    try:
        command = subprocess.Popen(
            orders["command"],
            cwd=orders["folder"],
            env=orders["environment"] | own,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}", _NOT_STARTED)
    heard = time.monotonic()
    while command.poll() is None and time.monotonic() - heard < SECONDS_OF_SILENCE:
        ready, _, _ = select.select([0, bell], [], [], 1.0)
        if bell in ready:
            os.read(bell, 512)
        if 0 in ready:
            if not os.read(0, 4096):
                break
            heard = time.monotonic()
    code = command.poll()
    kill_descendants()
    return 1 if code is None else code if code >= 0 else 128 - code


def _refuse(why: str, status: int) -> int:
    print(f"reperf: {socket.gethostname()}: {why}", file=sys.stderr, flush=True)
    return status


def _first_line() -> bytes:
    """The first line of standard input, unbuffered: a buffer would hide beats from `select`."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(1)
        line += byte
    return bytes(line)


def _lock_host(run: str) -> str:
    """Take this host for a run and all of its programs; "", or which run has it already."""
    path = Path(tempfile.gettempdir(), f"reperf-{socket.gethostname()}.lock")
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with suppress(OSError):  # another user's
        path.chmod(0o666)
    if try_lock(file, fcntl.LOCK_EX):
        os.truncate(file, 0)
        os.write(file, run.encode())
    user = os.pread(file, 300, 0).decode(errors="replace")
    return "" if user == run and try_lock(file, fcntl.LOCK_SH) else user or "another run"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reperf.training.remote")
    commands = parser.add_subparsers(dest="part", required=True)
    commands.add_parser("keep")
    starts = commands.add_parser("start")
    starts.add_argument(
        "--label", action="store_true", help="begin each line with the host's number"
    )
    starts.add_argument("--run", type=int, default=0, help="the process that starts all of a run")
    starts.add_argument("remote")
    starts.add_argument("hosts")
    starts.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.part == "keep":
        sys.exit(keep())
    hosts = options.hosts.split(",")
    of_run = {"run": options.run, "label": options.label}
    try:
        sys.exit(start(options.remote, hosts, options.command, **of_run))
    except OSError as error:  # no such command; what has begun ends with its input
        sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
