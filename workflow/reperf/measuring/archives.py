"""Archives of logs that anyone may have made: read in place, refused when they are hostile.

Nothing is unpacked to a name: a member is copied to a temporary file while it is read. What an
archive may hold, and may grow to, is bounded. Archives in archives are not read.
"""

import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import IO, Any

from reperf.errors import ReperfError, faults_of
from reperf.logs.checks import Refused
from reperf.logs.log_file import FREE_GROWTH, GROWTH, copy_of
from reperf.member_names import check_once, fault_of_name, shown

MOST_MEMBERS = 20_000

DAMAGE = (
    OSError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    UnicodeError,
    ValueError,
)
"""What the readers raise, depending on which byte is wrong."""

_ENCRYPTED = 0x1


@dataclass(frozen=True)
class ArchivedFile:
    """A file in an archive."""

    name: str  # its path in the archive
    size: int  # bytes, by the archive
    stream: Callable[[], Any]  # gives a stream of its bytes, which is read once

    def open(self) -> IO[bytes]:
        """A temporary copy of the file.

        Raises:
            Exception: one of DAMAGE: the archive is damaged.
        """
        copy = copy_of(self.stream(), self.size)
        if copy.tell() != self.size:
            raise zipfile.BadZipFile("a member is shorter than the archive says")
        copy.seek(0)
        return copy


def is_archive(path: PurePath) -> bool:
    """Whether a path is named as an archive that open_archive reads.

    Examples:
        >>> is_archive(PurePath("logs.tar.gz")), is_archive(PurePath("train.log.gz"))
        (True, False)
    """
    return path.name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz"))


@contextmanager
def open_archive(path: Path) -> Iterator[list[ArchivedFile]]:
    """The files of a zip or tar archive, to be read in their order and inside the block.

    Raises:
        ReperfError: it is damaged or hostile; one line says how. Damage found while a file is
            read raises one of DAMAGE.
    """
    with path.open("rb") as stream:
        most = max(FREE_GROWTH, GROWTH * path.stat().st_size)
        members = _zip_members if path.name.lower().endswith(".zip") else _tar_members
        try:
            with faults_of(path):
                files = _files(members(stream, most), most)
        except DAMAGE as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise ReperfError(f"{path}: is no whole archive: {why}; copy it again") from None
        yield files


_Member = tuple[str, int, Callable[[], Any] | None]
"""A member's name, its size, and what opens it; None: it is a folder."""


def _files(members: Iterator[_Member], most: int) -> list[ArchivedFile]:
    """The files of an archive by its directory, if their names, number and sizes are sound."""
    files, total = [], 0
    for count, (name, size, stream) in enumerate(members, 1):
        if count > MOST_MEMBERS:
            raise ReperfError(f"has more than {MOST_MEMBERS} members; allowed: that many or fewer")
        # Folders end with /, and tar files like to begin with ./
        plain = "/".join(part for part in name.removesuffix("/").split("/") if part != ".")
        if plain and (fault := fault_of_name(plain)):
            raise ReperfError(f"{shown(name)} {fault}")
        total += size
        if total > most:
            raise _too_large(most)
        if stream is not None:
            files.append(ArchivedFile(plain, size, stream))
    check_once(file.name for file in files)
    return files


def _too_large(most: int) -> ReperfError:
    return ReperfError(f"unpacks to more than {most} bytes; allowed: {GROWTH} times its own size")


def _link(name: str) -> ReperfError:
    return ReperfError(f"{shown(name)} is a link or a device; allowed: files")


def _zip_members(stream: IO[bytes], _most: int) -> Iterator[_Member]:
    archive = zipfile.ZipFile(stream)
    for info in archive.infolist():
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _link(info.filename)
        if info.flag_bits & _ENCRYPTED:
            raise ReperfError(f"{shown(info.filename)} is encrypted; allowed: plain members")
        opened = None if info.is_dir() else partial(archive.open, info)
        yield info.orig_filename, info.file_size, opened


def _tar_members(stream: IO[bytes], most: int) -> Iterator[_Member]:
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    if packed:
        try:
            stream = copy_of(gzip.GzipFile(fileobj=stream, mode="rb"), most)
        except Refused:
            raise _too_large(most) from None
        stream.seek(0)
    archive = tarfile.open(fileobj=stream, mode="r:")  # noqa: SIM115 - its files are read later
    for info in archive:
        if info.issparse() or not (info.isreg() or info.isdir()):
            raise _link(info.name)
        yield info.name, info.size, partial(archive.extractfile, info) if info.isreg() else None
