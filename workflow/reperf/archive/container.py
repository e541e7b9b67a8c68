"""A zip file whose bytes depend on nothing but the names and the bytes of its members.

Members lie in the order of their names, uncompressed, with one fixed time and mode; the manifest,
last, holds the SHA-256 of each. Uncompressed, because two builds of zlib pack the same bytes
differently.

So an archive has one right form, and verifying it means: its members are what the manifest says,
and writing them again gives the same file.
"""

import hashlib
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from reperf.errors import ReperfError, faults_of
from reperf.files import whole_file
from reperf.member_names import MANIFEST, check_once, fault_of_name, shown

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can store
_MODE = stat.S_IFREG | 0o644
_UNIX = 3
_CHUNK = 1 << 20
_MANIFEST_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
# What zipfile raises, depending on which byte is wrong. A RuntimeError: a member is encrypted.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Member:
    """A file to put into an archive."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]

    @classmethod
    def of_file(cls, name: str, path: Path) -> "Member":
        return cls(name, path.stat().st_size, lambda: path.open("rb"))

    @classmethod
    def of_bytes(cls, name: str, content: bytes) -> "Member":
        return cls(name, len(content), partial(BytesIO, content))


def write(path: Path, members: Iterable[Member]) -> None:
    """Write an archive and its manifest; refused for names that `verified` would refuse."""
    members = list(members)
    with faults_of(path):
        _check_names([MANIFEST, *(member.name for member in members)])
    with whole_file(path, "wb") as stream:
        _write(stream, members)


@contextmanager
def verified(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive that holds exactly what its manifest says, byte for byte.

    Nothing is unpacked, and memory holds one chunk of one member at a time.

    Raises:
        ReperfError: the first fault: no zip file, a member that has changed, is missing or was
            added, a path that leaves the archive, or a byte that the members do not account for.
    """
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive, faults_of(path):
            _check(archive, stream, path.stat().st_size)
    except OSError as error:
        raise ReperfError(f"{path}: {error.strerror or error}; name an archive") from None
    except _DAMAGE as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ReperfError(f"{path}: is no whole archive: {why}; copy it again") from None
    with zipfile.ZipFile(path) as archive:
        yield archive


def unpack(archive: zipfile.ZipFile, name: str, folder: Path) -> None:
    """Write one member of a verified archive below a folder."""
    with archive.open(name) as packed, whole_file(folder / name, "wb", durable=False) as target:
        shutil.copyfileobj(packed, target, _CHUNK)


def _write(stream: IO[bytes], members: Iterable[Member]) -> dict[str, str]:
    """Write members and their manifest; returns the SHA-256 of each."""
    with zipfile.ZipFile(stream, "w") as archive:
        digests = {
            member.name: _add(archive, member)
            for member in sorted(members, key=lambda member: member.name)
        }
        lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
        _add(archive, Member.of_bytes(MANIFEST, lines.encode()))
    return digests


def _add(archive: zipfile.ZipFile, member: Member) -> str:
    """Copy a member into an archive that is being written; returns its SHA-256."""
    info = zipfile.ZipInfo(member.name, _EPOCH)
    info.create_system = _UNIX
    info.external_attr = _MODE << 16
    info.file_size = member.size
    digest = hashlib.sha256()
    with member.open() as stream, archive.open(info, "w") as target:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            target.write(chunk)
    return digest.hexdigest()


def _check_names(names: Iterable[str]) -> None:
    names = list(names)
    for name in names:
        if fault := fault_of_name(name):
            raise ReperfError(f"{shown(name)} {fault}")
    check_once(names)


def _check(archive: zipfile.ZipFile, stream: IO[bytes], size: int) -> None:
    """Write an archive of so many bytes again: what belongs to no member shows as a difference."""
    infos = archive.infolist()
    _check_names(info.orig_filename for info in infos)
    unpacked = sum(info.file_size for info in infos)
    if unpacked > size:
        raise ReperfError(f"its members claim {unpacked} bytes; the whole file has {size}")
    promised = _read_manifest(archive)
    members = [
        Member(info.filename, info.file_size, partial(archive.open, info))
        for info in infos
        if info.filename != MANIFEST
    ]
    with tempfile.TemporaryFile() as again:
        found = _write(again, members)
        for name in sorted(promised.keys() | found.keys()):
            if name not in found:
                raise ReperfError(f"{name!r} is missing; {MANIFEST} lists it")
            if name not in promised:
                raise ReperfError(f"{name!r} was added; {MANIFEST} does not list it")
            if found[name] != promised[name]:
                raise ReperfError(f"{name!r} has changed: not the SHA-256 that {MANIFEST} lists")
        again.seek(0)
        stream.seek(0)
        if _sha256(again) != _sha256(stream):
            raise ReperfError(
                "holds bytes beside its members, or members that are no plain files in their order"
            )


def _read_manifest(archive: zipfile.ZipFile) -> dict[str, str]:
    """Member name -> SHA-256."""
    if MANIFEST not in archive.namelist():
        raise ReperfError(f"{MANIFEST!r} is missing; allowed: an archive that reperf made")
    promised = {}
    for number, line in enumerate(archive.read(MANIFEST).decode().splitlines(), start=1):
        if not (entry := _MANIFEST_LINE.fullmatch(line)):
            raise ReperfError(f"{MANIFEST!r} line {number}: {line[:80]!r}; allowed: SHA-256  name")
        promised[entry[2]] = entry[1]
    return promised


def _sha256(stream: Any) -> str:  # noqa: ANN401 - an IO, of which typing knows no readinto
    return hashlib.file_digest(stream, "sha256").hexdigest()
