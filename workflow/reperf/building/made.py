"""The list of what was made, by which the next call finds what is not as it would make it now.

Snakemake remembers in a folder of its own what it made a file from, but people remove that folder;
and it never checks whether a file is still what was made. So a table that somebody edited by hand
would enter the report and the archive. Each step therefore notes what it wrote, what it read and
which code it is. What it should have written and read comes from the rules and the plans alone:
the list only holds digests.
"""

import fcntl
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from reperf.building.code import code_of
from reperf.errors import ReperfError
from reperf.files import sha256 as sha256_of_file
from reperf.files import whole_file

LIST = Path("results/made.json")


@dataclass(frozen=True)
class Made:
    """What a step has made.

    Attributes:
        code: SHA-256 of its code.
        wrote: path -> SHA-256, of files and folders.
        read: SHA-256 of the paths and the contents of all that it read.
        seen: SHA-256 of the paths, sizes and times of all that it read; equal, nothing has changed.
    """

    code: str
    wrote: dict[str, str | None]
    read: str
    seen: str


_ENTRIES = TypeAdapter(dict[str, Made])


class List:
    """The list, as it was when a call began.

    Args:
        texts: path -> content of files that the call is about to write.
    """

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self._entries = _read()
        self._texts = texts or {}

    def why_again(self, step: str, outputs: Sequence[str], inputs: Iterable[str]) -> str | None:
        """Why a step must make its outputs again, though they are there.

        Args:
            step: its name.
            outputs: what it writes, the first of them its name in the list.
            inputs: what it reads.

        Returns:
            One line, "" where there is nothing to say, None if they are as it would make them.
        """
        entry = self._entries.get(outputs[0])
        if entry is None or entry.wrote.keys() != set(outputs):
            return ""
        for path in outputs:
            now = digest_of(path)
            if now is not None and now != entry.wrote[path]:
                return f"{path}: has changed since it was built"
        if None in map(digest_of, outputs) or entry.code != code_of(step):
            return ""
        inputs = list(inputs)
        written = [path for path in inputs if path in self._texts]
        if entry.seen == _seen(inputs) and all(
            digest_of(path) == self._digest_soon(path) for path in written
        ):
            return None
        read = _joined((path, self._digest_soon(path)) for path in sorted(set(inputs)))
        return None if entry.read == read else ""

    def _digest_soon(self, path: str) -> str | None:
        """The SHA-256 of a file, as it will be when the first job begins."""
        if path in self._texts:
            return sha256(self._texts[path].encode()).hexdigest()
        return digest_of(path)


@contextmanager
def making(step: str, outputs: Sequence[str], inputs: Iterable[str]) -> Iterator[None]:
    """Note what the block makes.

    Args:
        step: its name.
        outputs: files and folders that it writes.
        inputs: files that it reads.

    Raises:
        ReperfError: an input has changed since another step made it.
    """
    inputs = sorted(set(inputs))
    wrote = {path: digest for made in _read().values() for path, digest in made.wrote.items()}
    read = {path: digest_of(path) for path in inputs}
    for path in inputs:
        if path in wrote and read[path] != wrote[path]:
            raise ReperfError(f"{path}: has changed since it was built; allowed: as built")
    seen = _seen(inputs)
    yield
    made = Made(
        code=code_of(step),
        wrote={path: digest_of(path) for path in outputs},
        read=_joined(read.items()),
        seen=seen,
    )
    with _alone(), whole_file(LIST, durable=False) as stream:
        entries = _read() | {outputs[0]: made}
        stream.write(_ENTRIES.dump_json(entries, indent=1).decode() + "\n")


def digest_of(path: str) -> str | None:
    """The SHA-256 of a file, or of a folder's names and contents; None if it does not exist.

    Raises:
        ReperfError: it cannot be read.
    """
    place = Path(path)
    try:
        if place.is_dir():
            # Snakemake puts a hidden file of its own into folders.
            files = sorted(file for file in place.rglob("[!.]*") if file.is_file())
            return _joined((str(file), sha256_of_file(file)) for file in files)
        return sha256_of_file(place) if place.exists() else None
    except OSError as error:
        raise ReperfError(f"{path}: cannot be read: {error.strerror}") from None


def _read() -> dict[str, Made]:
    try:
        return _ENTRIES.validate_json(LIST.read_bytes())
    except (OSError, ValidationError):
        return {}


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other steps from changing the list meanwhile."""
    LIST.parent.mkdir(parents=True, exist_ok=True)
    with LIST.with_name(".made.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _seen(paths: Iterable[str]) -> str:
    return _joined((path, _state(path)) for path in sorted(set(paths)))


def _state(path: str) -> tuple[int, ...] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _joined(pairs: Iterable[tuple[str, object]]) -> str:
    return sha256(json.dumps([*pairs]).encode()).hexdigest()
