"""The identity of a container image that is a file or a folder."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from reperf.files import sha256


def digest_of(image: Path) -> str:
    """`sha256:` and the SHA-256 of an image file, or of a folder's files and links.

    Of a folder, names, kinds, permissions and contents count. Times do not, nor do folders
    themselves and Python's bytecode: engines make mount points, and programs leave bytecode.
    """
    if not image.is_dir():
        return f"sha256:{sha256(image)}"
    found = _digest_of(
        (path, status.st_mode, _content_of(image / path, status))
        for path, status in _files_in(image)
    )
    return f"sha256:{found}"


def fingerprint_of(image: Path) -> str:
    """A SHA-256 that changes when an image does, of what can be seen without reading contents."""
    files = _files_in(image) if image.is_dir() else [("", image.stat())]
    return _digest_of(
        (path, status.st_mode, status.st_size, status.st_mtime_ns) for path, status in files
    )


def _digest_of(facts: Iterable[tuple[object, ...]]) -> str:
    """The SHA-256 of what is said of each file; repr() keeps names that are no UTF-8 apart."""
    found = hashlib.sha256()
    for of_file in facts:
        found.update(f"{of_file!r}\n".encode())
    return found.hexdigest()


def _files_in(folder: Path | str, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """The files and links of a folder, by their names below it, in order."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = below + entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False)
            elif entry.name != "__pycache__":
                yield from _files_in(entry.path, f"{name}/")


def _content_of(path: Path, status: os.stat_result) -> str:
    """Where a link leads, or the SHA-256 of a file; "" of what is neither."""
    if stat.S_ISLNK(status.st_mode):
        return str(path.readlink())
    return sha256(path) if stat.S_ISREG(status.st_mode) else ""
