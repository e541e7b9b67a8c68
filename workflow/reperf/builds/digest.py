"""The identity of a container image that is a file or a folder."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 1 << 22


def digest_of(image: Path) -> str:
    """`sha256:` and the SHA-256 of an image file, or of a folder's files and links.

    Of a folder, names, kinds, permissions and contents count. Times do not, nor do folders
    themselves and Python's bytecode: engines make mount points, and programs leave bytecode.
    """
    found = hashlib.sha256()
    if image.is_dir():
        for path, status in _files_in(image):
            # Lengths first, so that no two folders give the same bytes.
            kind = f"{path}\0{status.st_mode:o}\0{status.st_size}\0"
            found.update(kind.encode(errors="surrogateescape"))
            _add_content(found, image / path, status)
    else:
        _add_content(found, image, image.stat())
    return f"sha256:{found.hexdigest()}"


def fingerprint_of(image: Path) -> str:
    """A SHA-256 that changes when an image does, of what can be seen without reading contents."""
    found = hashlib.sha256()
    files = _files_in(image) if image.is_dir() else [("", image.stat())]
    for path, status in files:
        facts = f"{path}\0{status.st_mode:o}\0{status.st_size}\0{status.st_mtime_ns}\0"
        found.update(facts.encode(errors="surrogateescape"))
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


def _add_content(found: "hashlib._Hash", path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        found.update(os.fsencode(path.readlink()))
    elif stat.S_ISREG(status.st_mode):
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                found.update(chunk)
