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
from reperf.logs.log_file import FREE_GROWTH, GROWTH, copy_of
from reperf.member_names import check_once, fault_of_name, shown

MOST_MEMBERS = 20_000

DAMAGE = (
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
    """A file in an archive.

    Attributes:
        name: its path in the archive.
        size: bytes, by the archive.
        stream: gives a stream of its bytes, which is read once.
    """

    name: str
    size: int
    stream: Callable[[], Any]

    def open(self) -> IO[bytes]:
        """A temporary copy of the file.

        Raises:
            OSError: or one of DAMAGE: the archive is damaged.
        """
        copy = copy_of(self.stream(), self.size)
        if copy.tell() != self.size:
            raise zipfile.BadZipFile("a member is shorter than the archive says")
        copy.seek(0)
        return copy


def is_archive(path: PurePath) -> bool:
    """Whether a path is named as an archive that open_archive reads."""
    return path.name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz"))


@contextmanager
def open_archive(path: Path) -> Iterator[list[ArchivedFile]]:
    """The files of a zip or tar archive, to be read in their order and inside the block.

    Raises:
        ReperfError: it is damaged or hostile; one line says how. Damage found while a file is
            read raises one of DAMAGE, or OSError.
    """
    with path.open("rb") as stream:
        with damage_in(path):
            most = max(FREE_GROWTH, GROWTH * path.stat().st_size)
            opener = _open_zip if path.name.lower().endswith(".zip") else _open_tar
            files = opener(stream, most)
        yield files


@contextmanager
def damage_in(path: PurePath) -> Iterator[None]:
    """Say in one line what the block finds wrong with an archive."""
    try:
        with faults_of(path):
            yield
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ReperfError(f"{path}: {error.strerror}; allowed: an archive") from None
    except (OSError, *DAMAGE) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ReperfError(f"{path}: is no whole archive: {why}") from None


def _check_zip(archive: zipfile.ZipFile, most: int) -> None:
    """Judge a zip file by its directory: names, kinds, encryption and sizes.

    Args:
        archive: the zip file.
        most: bytes that its members may hold.

    Raises:
        ReperfError: one line with the first fault.
    """
    infos = archive.infolist()
    _check_count(len(infos))
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        is_file = kind in (0, stat.S_IFREG, stat.S_IFDIR)
        _check_member(info.orig_filename, is_file=is_file)
        if info.flag_bits & _ENCRYPTED:
            raise ReperfError(f"{shown(info.filename)} is encrypted; allowed: plain members")
    check_once(_plain(info.filename) for info in infos)
    _check_size(sum(info.file_size for info in infos), most)


def _check_member(name: str, *, is_file: bool) -> None:
    plain = _plain(name)
    if plain and (fault := fault_of_name(plain)):
        raise ReperfError(f"{shown(name)} {fault}")
    if not is_file:
        raise ReperfError(f"{shown(name)} is a link or a device; allowed: files")


def _check_count(count: int) -> None:
    if count > MOST_MEMBERS:
        raise ReperfError(f"has more than {MOST_MEMBERS} members; allowed: that many or fewer")


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ReperfError(
            f"unpacks to more than {most} bytes; allowed: {GROWTH} times its own size"
        )


def _plain(name: str) -> str:
    """A name without the / that folders end with, and the ./ that tar files like to begin with."""
    return "/".join(part for part in name.removesuffix("/").split("/") if part != ".")


def _open_zip(stream: IO[bytes], most: int) -> list[ArchivedFile]:
    archive = zipfile.ZipFile(stream)
    _check_zip(archive, most)
    return [
        ArchivedFile(_plain(info.filename), info.file_size, partial(archive.open, info))
        for info in archive.infolist()
        if not info.is_dir()
    ]


class _Bounded:
    """A stream for tarfile that is read no further than so many bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most = stream, most
        self.tell = stream.tell

    def read(self, size: int) -> bytes:
        _check_size(self.tell() + max(0, size), self._most)
        return self._stream.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        _check_size(place, self._most)
        return self._stream.seek(place, whence)


def _open_tar(stream: IO[bytes], most: int) -> list[ArchivedFile]:
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    unpacked: Any = gzip.GzipFile(fileobj=stream, mode="rb") if packed else stream
    plain: Any = _Bounded(unpacked, most)
    archive = tarfile.open(fileobj=plain, mode="r:")  # noqa: SIM115 - its files are read later
    files = []
    for count, info in enumerate(archive, start=1):
        _check_count(count)
        _check_member(info.name, is_file=(info.isreg() or info.isdir()) and not info.issparse())
        if info.isreg():
            files.append(
                ArchivedFile(_plain(info.name), info.size, partial(archive.extractfile, info))
            )
    check_once(file.name for file in files)
    return files
