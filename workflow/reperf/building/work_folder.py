"""The work folder lock: one workflow at a time works in a folder."""

import fcntl
import os
import shlex
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from reperf.errors import ReperfError
from reperf.files import try_lock

CALL = "REPERF_CALL"
"""The environment variable that names a call of the workflow: its host, its process, its time."""

# Each is locked until every process that has it open has ended, however it ends.
_LOCK = ".reperf-in-use"
_STEPS_LOCK = ".reperf-in-use-by-steps"


def check_folder(folder: Path) -> None:
    """Refuse a folder in which no workflow can work, and a Python that starts no scripts."""
    for character, name in ((os.pathsep, "a colon"), ("\n", "a line break")):
        if character in str(folder):
            raise ReperfError(f"{folder}: {name} in the path of the work folder; allowed: none")
    if shlex.quote(sys.executable) != sys.executable:
        raise ReperfError(
            f"{sys.executable}: Snakemake starts no scripts by this path; allowed: a Python in a "
            "folder whose path has letters, digits and @%+=:,./-_ alone"
        )
    for place in (folder, *folder.glob(".snakemake")):
        if not os.access(place, os.W_OK):
            where = place.absolute()
            raise ReperfError(f"{where}: not writable; allowed: a folder that you may write to")


def lock_folder(folder: Path | str) -> None:
    """Keep other workflows out of a folder until this process ends; refused if one works there.

    Steps of a killed workflow are about to end; this waits for them, a minute at most.
    """
    folder, host = Path(folder).absolute(), socket.gethostname()
    me = f"process {os.getpid()} on {host}"
    try:
        _lock(folder / _LOCK, me)
        wait_for_steps(folder, f"what {me} has left")
    except OSError as error:
        raise ReperfError(
            f"{error.filename or folder / _LOCK}: cannot be written: {error.strerror or error}; "
            "allowed: a file that you may write to, or none"
        ) from None
    os.environ[CALL] = f"{host} {os.getpid()} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def was_called_here() -> bool:
    """Whether the workflow that this process belongs to runs on this machine."""
    return os.environ.get(CALL, "").startswith(f"{socket.gethostname()} ")


def wait_for_steps(folder: Path, user: str) -> None:
    """Wait, a minute at most, until no other workflow's step is left in a folder.

    A workflow that waits for this one names its `user`.
    """
    os.close(_lock(folder / _STEPS_LOCK, user, seconds=60))


def lock_for_step() -> bool:
    """Let the next workflow wait for this process and its forks; False if it begins just now."""
    return try_lock(os.open(_STEPS_LOCK, os.O_RDWR | os.O_CREAT, 0o666), fcntl.LOCK_SH)


def _lock(path: Path, user: str, seconds: float = 0) -> int:
    """Open and lock a file, once nobody else does, and write for whom."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    latest = time.monotonic() + seconds
    while not try_lock(file, fcntl.LOCK_EX):
        if time.monotonic() >= latest:
            user = os.read(file, 300).decode(errors="replace")
            raise ReperfError(f"{path.parent}: in use by {user}; allowed: one workflow at a time")
        time.sleep(0.1)
    os.truncate(file, 0)
    os.write(file, user.encode())
    return file
