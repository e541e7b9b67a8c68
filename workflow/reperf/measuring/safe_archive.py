"""Archives that anyone may have made: read in place, refused when they are hostile.

Nothing is unpacked to disk. A zip file is judged by its directory, a tar file by a pass over its
headers, before any member is handed out. An archive inside another is held in memory, and what all
of them unpack to is bounded by the size of the outermost one.
"""

import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from reperf.archive.names import check_once, fault_of_name, shown
from reperf.errors import ReperfError, faults_of
from reperf.logs.scan import Stream

MOST_MEMBERS = 20_000
MOST_NAMES = 1 << 25
"""Bytes of a zip file's directory."""
GROWTH = 200
"""How many times its size an archive may unpack to; logs seldom reach 30."""
FREE_GROWTH = 1 << 26
"""Bytes that any archive may unpack to."""
LARGEST_INSIDE = 1 << 28
"""Bytes of an archive that lies in another: it is held in memory."""
DEEPEST = 3
"""How many archives may lie around one."""
LONGEST_HEADER = 1 << 20
"""Bytes that a tar file's header may have read at once."""

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
_LOCAL_HEADER = 30
_LONGEST_END = 76 + 22 + (1 << 16)


@dataclass(frozen=True)
class ArchivedFile:
    """A file in an archive."""

    name: str
    size: int
    open: Callable[[], Stream]


class Allowance:
    """What an archive, and all that lie in it, may still unpack to."""

    def __init__(self, size: int) -> None:
        """Begin with an archive of so many bytes."""
        self.unpacked = max(FREE_GROWTH, GROWTH * size)
        self.members = MOST_MEMBERS

    def take(self, files: list[ArchivedFile]) -> list[ArchivedFile]:
        """Give an archive's files out, all of which count from now on."""
        self.members -= len(files)
        self.unpacked -= sum(file.size for file in files)
        return files


def is_archive(path: PurePath) -> bool:
    """Whether a path is named as an archive that open_archive reads."""
    return path.name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz"))


@contextmanager
def open_archive(path: Path, allowance: Allowance | None = None) -> Iterator[list[ArchivedFile]]:
    """The files of a zip or tar archive, to be read in their order and inside the block.

    Args:
        path: of the archive.
        allowance: for it and the archives in it.

    Raises:
        ReperfError: it is damaged or hostile; one line says how. Damage found while a file is
            read raises one of DAMAGE, or OSError.
    """
    with path.open("rb") as stream:
        size = path.stat().st_size
        yield _files_in(path, stream, size, allowance or Allowance(size))


def open_inside(
    path: PurePath, file: ArchivedFile, depth: int, allowance: Allowance
) -> list[ArchivedFile]:
    """The files of an archive that lies in another.

    Args:
        path: of the outermost archive, with the names of those inside it.
        file: the archive.
        depth: how many archives lie around it.
        allowance: of the outermost one.

    Raises:
        ReperfError: as open_archive does; or it is too large, or too deep inside others.
    """
    if file.size > LARGEST_INSIDE:
        raise ReperfError(
            f"{path}: has {file.size} bytes; allowed in another archive: up to {LARGEST_INSIDE}"
        )
    if depth > DEEPEST:
        raise ReperfError(f"{path}: lies in {depth} archives; allowed: up to {DEEPEST}")
    content = BytesIO()
    with file.open() as stream:
        while chunk := stream.read(1 << 20):
            content.write(chunk)
    content.seek(0)
    return _files_in(path, content, file.size, allowance)


def _files_in(
    path: PurePath, stream: Stream, size: int, allowance: Allowance
) -> list[ArchivedFile]:
    opener = _open_zip if path.name.lower().endswith(".zip") else _open_tar
    with damage_in(path):
        return allowance.take(opener(stream, size, allowance))


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


def check_zip(
    archive: zipfile.ZipFile,
    size: int,
    *,
    as_written: bool = False,
    allowance: Allowance | None = None,
) -> None:
    """Judge a zip file by its directory: names, kinds, encryption, sizes and places.

    Args:
        archive: the zip file.
        size: of the whole file, bytes.
        allowance: of the archive around it; None: its own.
        as_written: whether it must hold what reperf writes: plain files, not compressed.

    Raises:
        ReperfError: one line with the first fault.
    """
    infos = archive.infolist()
    for info in infos:
        name = info.orig_filename
        fault = fault_of_name(name) if as_written else _fault_of_place(name)
        if fault := fault or _fault_of(info, as_written):
            raise ReperfError(f"{shown(name)} {fault}")
    check_once(_plain(info.filename) for info in infos)
    unpacked = sum(info.file_size for info in infos)
    if as_written and unpacked > size:
        raise ReperfError(f"its members claim {unpacked} bytes; the whole file has {size}")
    _check_growth(unpacked, size, allowance or Allowance(size))
    places = sorted((info.header_offset, info.compress_size) for info in infos)
    for (offset, length), (following, _) in pairwise([*places, (archive.start_dir, 0)]):
        if offset + _LOCAL_HEADER + length > following:
            raise ReperfError("its members overlap; allowed: each byte in one member")


def _fault_of(info: zipfile.ZipInfo, as_written: bool) -> str | None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device; allowed: files"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted; allowed: plain members"
    if as_written and kind == stat.S_IFDIR:
        return "is a folder; allowed: files"
    if as_written and info.compress_type != zipfile.ZIP_STORED:
        return "is compressed; allowed: members as reperf stores them"
    return None


def _fault_of_place(name: str) -> str | None:
    """Why no file or folder of others' archives may have this name; None if it may."""
    return fault_of_name(plain) if (plain := _plain(name)) else None


def _plain(name: str) -> str:
    """A name without the / that folders end with, and the ./ that tar files like to begin with."""
    return "/".join(part for part in name.removesuffix("/").split("/") if part != ".")


def _check_growth(unpacked: int, size: int, allowance: Allowance) -> None:
    if unpacked > min(max(FREE_GROWTH, GROWTH * size), allowance.unpacked):
        raise ReperfError(
            f"unpacks to more than {GROWTH} times its size, or that of the archive around it; "
            "allowed: what logs may be packed to"
        )


def _check_count(count: int, allowance: Allowance) -> None:
    if count > allowance.members:
        raise ReperfError(
            f"has more than {MOST_MEMBERS} members, those of archives around it included; "
            "allowed: that many or fewer"
        )


def _open_zip(stream: Stream, size: int, allowance: Allowance) -> list[ArchivedFile]:
    _check_directory(stream, size, allowance)
    archive = zipfile.ZipFile(stream)
    _check_count(len(archive.infolist()), allowance)
    check_zip(archive, size, allowance=allowance)
    return [
        ArchivedFile(_plain(info.filename), info.file_size, partial(_WholeMember, archive, info))
        for info in archive.infolist()
        if not info.is_dir()
    ]


def _check_directory(stream: Stream, size: int, allowance: Allowance) -> None:
    """Check what a zip file's end says about its directory, before that is read as a whole."""
    stream.seek(max(0, size - _LONGEST_END))
    tail = stream.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(tail):
        raise ReperfError("is no whole archive: the end of a zip file is missing")
    count, names = struct.unpack("<10xHI6x", tail[at : at + 22])
    if at >= 76 and tail[at - 20 :].startswith(b"PK\x06\x07"):  # the 64-bit form comes before it
        count, names = struct.unpack("<32xQQ8x", tail[at - 76 : at - 20])
    _check_count(count, allowance)
    if names > MOST_NAMES:
        raise ReperfError(f"its directory has {names} bytes; allowed: up to {MOST_NAMES}")


class _WholeMember:
    """A member of a zip file, which must be as long as the directory says."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self._stream: Stream = archive.open(info)
        self._left = info.file_size

    def __enter__(self) -> "_WholeMember":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._take(len(chunk))
        return chunk

    def readinto(self, buffer: memoryview) -> int:
        read = self._stream.readinto(buffer)
        self._take(read)
        return read

    def _take(self, read: int) -> None:
        self._left -= read
        if not read and self._left:
            raise zipfile.BadZipFile("a member is shorter than the archive says")


class _Guarded:
    """A stream for tarfile that limits what is read at once and in all."""

    def __init__(self, stream: Stream, check: Callable[[int], None]) -> None:
        self._stream = stream
        self._check = check
        self.furthest = 0

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LONGEST_HEADER:
            raise ReperfError(f"has a header of {size} bytes; allowed: up to {LONGEST_HEADER}")
        self._reach(self._stream.tell() + size)
        return self._stream.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        self._reach(place)
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def _reach(self, place: int) -> None:
        self._check(place)
        self.furthest = max(self.furthest, place)


def _open_tar(stream: Stream, size: int, allowance: Allowance) -> list[ArchivedFile]:
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    # Its members are read when the archives in it have taken their part.
    check = partial(_check_growth, size=size, allowance=copy(allowance))
    plain: Any = _Guarded(gzip.GzipFile(fileobj=stream) if packed else stream, check)
    try:
        return _members(tarfile.open(fileobj=plain, mode="r:"), allowance)
    except BaseException:
        allowance.unpacked -= plain.furthest  # a refused archive has been unpacked, too
        raise


def _members(archive: tarfile.TarFile, allowance: Allowance) -> list[ArchivedFile]:
    files = []
    for count, info in enumerate(archive, start=1):
        _check_count(count, allowance)
        if fault := _fault_of_place(info.name):
            raise ReperfError(f"{shown(info.name)} {fault}")
        if not (info.isreg() or info.isdir()) or info.issparse():
            raise ReperfError(f"{shown(info.name)} is a link or a device; allowed: files")
        if info.isreg():
            opener = partial(archive.extractfile, info)
            files.append(ArchivedFile(_plain(info.name), info.size, opener))
    check_once(file.name for file in files)
    return files
