"""Files that appear whole or not at all, and folders that one process works in."""

import fcntl
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from reperf.errors import ReperfError


@contextmanager
def whole_file(path: Path | str, mode: str = "w", durable: bool = True) -> Iterator[IO]:
    """Open a file for writing that takes its name only when the block ends well.

    The data is written beside `path` under a hidden temporary name, flushed to the disk and
    renamed. When the block raises, the temporary file is removed and `path` is left as it was. What
    an earlier writer left when it was killed is removed as well.

    Args:
        durable: wait until the disk holds the data, so that it outlives a power cut. Large files
            that can be made again need not wait.

    Raises:
        ReperfError: the file cannot be written, for example because no space is left.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partials(path.parent, path.name)
        with partial.open(mode, **text) as stream:
            with suppress(OSError):  # some file systems have no locks
                _lock(stream, fcntl.LOCK_EX)
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        if error.filename and Path(error.filename) not in (partial, *path.parents):
            raise  # another file's trouble, met inside the block
        raise ReperfError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if partial.exists():
            partial.unlink()


def remove_partials(folder: Path, name: str = "") -> None:
    """Remove the half-written files in a folder that nobody writes any more.

    Args:
        folder: where to look; not below it.
        name: the file that they were to become; any, if left out.
    """
    start = f".{name}." if name else "."
    for path in folder.iterdir():
        if path.name.startswith(start) and path.name.endswith(".partial"):
            with suppress(OSError), path.open("r+b") as stream:  # of another user, or just gone
                if _lock(stream, fcntl.LOCK_EX):
                    path.unlink()


def sha256(path: Path | str) -> str:
    """The SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_folder(folder: Path) -> None:
    """Refuse a folder in which no workflow can work.

    Raises:
        ReperfError: its path has a character that no list of folders can hold, or this process may
            not write there.
    """
    for character, name in ((os.pathsep, "a colon"), ("\n", "a line break")):
        if character in str(folder):
            raise ReperfError(f"{folder}: {name} in the path of the work folder; allowed: none")
    for place in (folder, *folder.glob(".snakemake")):
        if not os.access(place, os.W_OK):
            raise ReperfError(
                f"{place.absolute()}: you may not write there; allowed: a folder where you may"
            )


WORKFLOW = "REPERF_WORKFLOW"
"""The environment variable that holds the process of the workflow that holds the folder."""

_HOLD = ".reperf-in-use"
_SECONDS_TO_END = 60
"""How long the next workflow waits for what a killed one has started."""

_held: list[IO] = []


def hold_folder(folder: Path | str) -> None:
    """Keep other workflows out of a folder until this process ends, however it ends.

    Scripts of this workflow share the hold. The kernel lets go of it with the last of them, even
    after SIGKILL, so none is ever left behind to be cleared. What a killed workflow has left is on
    its way to its end, and waited for.

    Raises:
        ReperfError: another process holds the folder, or this one may not write there.
    """
    stream = _open_hold(folder)
    me = f"{os.getpid()} {socket.gethostname()}"
    begun = time.monotonic()
    # Whoever comes is first alone with the folder, and shares it with its own scripts from then on.
    while not (_lock(stream, fcntl.LOCK_EX) and _write(stream, me) and _share(stream, me)):
        process, _, host = _read(stream).partition(" ")
        elsewhere = f" on {host}" if host not in ("", socket.gethostname()) else ""
        lives = elsewhere or _lives(process)
        if lives or time.monotonic() > begun + _SECONDS_TO_END:
            by = f"process {process}{elsewhere}" if lives else f"what process {process} has left"
            raise ReperfError(
                f"{Path(folder).resolve()}: in use by {by}; allowed: one workflow at a time"
            )
        time.sleep(0.1)
    _held.append(stream)
    os.environ[WORKFLOW] = str(os.getpid())


def share_folder(folder: Path | str) -> None:
    """Hold a folder together with the workflow that holds it, until this process ends.

    Processes that are forked from this one hold it, too.

    Raises:
        ReperfError: another workflow is about to hold it.
    """
    stream = _open_hold(folder)
    if not _lock(stream, fcntl.LOCK_SH):
        raise ReperfError(f"{Path(folder).resolve()}: in use by another workflow than this one's")
    _held.append(stream)


def _open_hold(folder: Path | str) -> IO[bytes]:
    lock = Path(folder, _HOLD)
    try:
        return lock.open("ab+", buffering=0)
    except OSError as error:
        raise ReperfError(
            f"{lock.absolute()}: cannot be written: {error.strerror or error}; "
            "allowed: a file that you may write to, or none"
        ) from None


def _lock(stream: IO, how: int) -> bool:
    """Lock a file without waiting; returns whether that was possible."""
    try:
        fcntl.flock(stream, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _share(stream: IO, me: str) -> bool:
    # Changing a lock lets go of it for a moment, in which another workflow may have come.
    return _lock(stream, fcntl.LOCK_SH) and _read(stream) == me


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(300).decode(errors="replace").strip()


def _write(stream: IO[bytes], text: str) -> bool:
    stream.truncate(0)
    stream.write(text.encode())
    return True


def _lives(process: str) -> bool:
    """Whether a process, named by its number, does more than wait to be buried by its parent."""
    try:
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    except (ValueError, psutil.NoSuchProcess):
        return False
