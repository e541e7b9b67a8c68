"""Files that appear whole or not at all."""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from reperf.errors import ReperfError


@contextmanager
def whole_file(path: Path | str, mode: str = "w", durable: bool = True) -> Iterator[IO[Any]]:
    """Open a file for writing; it gets its name only when the block ends well.

    The data is written beside `path` under a hidden temporary name, flushed to the disk if it must
    be `durable`, and renamed. What a killed writer left behind is removed. A ReperfError says that
    the file cannot be written, for example because no space is left.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partials(path.parent, path.name)
        with partial.open(mode, **text) as stream:
            with suppress(OSError):  # some file systems have no locks
                try_lock(stream, fcntl.LOCK_EX)
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        if error.filename and Path(error.filename) not in (partial, *path.parents):
            raise  # the block had trouble with another file
        raise ReperfError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if partial.exists():
            partial.unlink()


def write_whole(path: Path | str, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file, whole or not at all; see whole_file."""
    with whole_file(path, "wb" if isinstance(content, bytes) else "w", durable) as stream:
        stream.write(content)


def remove_partials(folder: Path, name: str = "") -> None:
    """Remove half-written files, of any name or of one, that nobody is writing any more."""
    start = f".{name}." if name else "."
    for path in folder.iterdir():
        if path.name.startswith(start) and path.name.endswith(".partial"):
            with suppress(OSError), path.open("r+b") as stream:  # of another user, or just gone
                if try_lock(stream, fcntl.LOCK_EX):
                    path.unlink()


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Say in one line which file or folder the block cannot read: OSError becomes a ReperfError."""
    try:
        yield
    except OSError as error:
        raise ReperfError(f"{path}: cannot be read: {error.strerror}") from None


def sha256(path: Path | str) -> str:
    """The SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_checksums(path: Path | str, files: Iterable[str]) -> None:
    """List the SHA-256 of files, as `sha256sum` does."""
    with whole_file(path) as stream:
        stream.writelines(f"{sha256(file)}  {file}\n" for file in files)


def check_checksums(path: Path | str) -> None:
    """Refuse files that are not as a list of checksums says."""
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        digest, _, file = line.partition("  ")
        if sha256(file) != digest:
            raise ReperfError(
                f"{file}: is not as it was made, by {path}; allowed: as made; once it is removed, "
                "the next call makes it again"
            )


def try_lock(file: IO[Any] | int, how: int) -> bool:
    """Lock an open file without waiting; return whether that was possible."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
