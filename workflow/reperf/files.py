"""Files that appear whole or not at all, and folders that one process works in."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from reperf.errors import ReperfError


@contextmanager
def whole_file(path: Path | str, mode: str = "w", durable: bool = True) -> Iterator[IO]:
    """Open a file for writing that takes its name only when the block ends well.

    The data is written beside `path` under a hidden temporary name, flushed to the disk and
    renamed. When the block raises, the temporary file is removed and `path` is left as it was.

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
        with partial.open(mode, **text) as stream:
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


_held: list[IO] = []


def hold_folder(folder: Path | str) -> None:
    """Keep other workflows out of a folder until this process ends, however it ends.

    The kernel lets go of the hold even after SIGKILL, so none is ever left behind to be cleared.

    Raises:
        ReperfError: another process holds the folder, or this one may not write there.
    """
    lock = Path(folder, ".reperf-in-use")
    try:
        stream = lock.open("ab+", buffering=0)
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stream.truncate(0)
        stream.write(str(os.getpid()).encode())
        _held.append(stream)
    except BlockingIOError:
        stream.seek(0)
        holder = stream.read(20).decode(errors="replace").strip()
        raise ReperfError(
            f"{Path(folder).resolve()}: in use by process {holder}; allowed: one workflow at a time"
        ) from None
    except OSError as error:
        raise ReperfError(
            f"{lock.absolute()}: cannot be written: {error.strerror or error}; "
            "allowed: a file that you may write to, or none"
        ) from None
