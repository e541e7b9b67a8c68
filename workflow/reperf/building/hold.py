"""The folder that a workflow works in: other workflows are kept out, its own scripts share it."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import psutil

from reperf.errors import ReperfError
from reperf.files import try_lock


def check_folder(folder: Path) -> None:
    """Refuse a folder in which no workflow can work.

    Raises:
        ReperfError: its path has a character that a list of folders, such as PATH, cannot hold, or
            this process may not write there.
    """
    for character, name in ((os.pathsep, "a colon"), ("\n", "a line break")):
        if character in str(folder):
            raise ReperfError(f"{folder}: {name} in the path of the work folder; allowed: none")
    for place in (folder, *folder.glob(".snakemake")):
        if not os.access(place, os.W_OK):
            raise ReperfError(
                f"{place.absolute()}: not writable; allowed: a folder that you may write to"
            )


WORKFLOW = "REPERF_WORKFLOW"
"""The environment variable with the process number of the workflow that holds the folder."""

CALL = "REPERF_CALL"
"""The environment variable that names a call of the workflow: its host, its process, its time."""

_HOLD = ".reperf-in-use"
_SECONDS_TO_END = 60
"""How long the next workflow waits for processes that a killed one has started."""

_held: list[IO] = []


def hold_folder(folder: Path | str) -> None:
    """Keep other workflows out of a folder until this process ends, however it ends.

    Scripts of this workflow share the hold. The kernel releases it with the last of them, even
    after SIGKILL, so no stale hold ever needs clearing. Processes that a killed workflow left are
    about to end, so this waits for them.

    Raises:
        ReperfError: another process holds the folder, or this one may not write there.
    """
    with _one_line_errors(folder):
        _hold_alone(folder)
    os.environ[WORKFLOW] = str(os.getpid())
    os.environ[CALL] = (
        f"{socket.gethostname()} {os.getpid()} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    )


def _hold_alone(folder: Path | str) -> None:
    stream = _open(folder)
    me = f"{os.getpid()} {socket.gethostname()}"
    begun = time.monotonic()
    # Each workflow first holds the folder alone, and from then on shares it with its own scripts.
    while not (try_lock(stream, fcntl.LOCK_EX) and _write(stream, me) and _share(stream, me)):
        process, _, host = _read(stream).partition(" ")
        elsewhere = f" on {host}" if host not in ("", socket.gethostname()) else ""
        lives = elsewhere or _lives(process)
        if lives or time.monotonic() > begun + _SECONDS_TO_END:
            left = f"what process {process} left behind"
            by = f"process {process}{elsewhere}" if lives else left
            raise ReperfError(
                f"{Path(folder).resolve()}: in use by {by}; allowed: one workflow at a time"
            )
        time.sleep(0.1)
    _held.append(stream)


def share_folder(folder: Path | str) -> None:
    """Hold a folder together with the workflow that holds it, until this process ends.

    Processes that are forked from this one hold it, too.

    Raises:
        ReperfError: another workflow is about to hold it.
    """
    with _one_line_errors(folder):
        stream = _open(folder)
        if not try_lock(stream, fcntl.LOCK_SH):
            raise ReperfError(
                f"{Path(folder).resolve()}: in use by a workflow other than this script's"
            )
    _held.append(stream)


def _open(folder: Path | str) -> IO[bytes]:
    return Path(folder, _HOLD).open("ab+", buffering=0)


@contextmanager
def _one_line_errors(folder: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReperfError(
            f"{Path(folder, _HOLD).absolute()}: cannot be written: {error.strerror or error}; "
            "allowed: a file that you may write to, or none"
        ) from None


def _share(stream: IO, me: str) -> bool:
    # Changing a lock releases it for a moment, in which another workflow may have taken it.
    return try_lock(stream, fcntl.LOCK_SH) and _read(stream) == me


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(300).decode(errors="replace").strip()


def _write(stream: IO[bytes], text: str) -> bool:
    stream.truncate(0)
    stream.write(text.encode())
    return True


def _lives(process: str) -> bool:
    """Whether a process, given by its number, is alive, and not just a zombie."""
    try:
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    except (ValueError, psutil.NoSuchProcess):
        return False
