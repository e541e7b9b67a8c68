"""A log's bytes: unpacked, without terminal colours, and in parts that fit in memory.

A log may be a hundred lines or many gigabytes. It is read a chunk at a time, and any part of it can
be read again. What cannot be read again (a pipe, a compressed file, a member of an archive) is
copied to a temporary file first.
"""

import bz2
import gzip
import lzma
import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Protocol

from reperf.logs.checks import Refused

SMALLEST_CHUNK = 1 << 16
LARGEST_CHUNK = 1 << 20
LONGEST_LINE = 1 << 20  # bytes: no log has longer lines; they are cut there
BEGINNING = 1 << 22  # bytes within which a log shows its format, and whether it has colours
GROWTH = 200  # how many times its size a compressed log may unpack to; logs seldom reach 30
FREE_GROWTH = 1 << 26  # bytes that any compressed log may unpack to
_LARGEST_PIPE = 1 << 36
_IN_MEMORY = 1 << 22  # bytes: what is longer is copied to the disk
_ESCAPE = b"\x1b"
_COLOUR = re.compile(rb"\x1b(?:\[(?:[\d;]{0,30}m|0?K)|\(B)")
"""What a terminal shows as a colour, around a line or any part of it, or by which it clears the rest
of a line."""


class Readable(Protocol):
    """A stream of bytes that is read from its beginning to its end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, up to so many; none at the end."""


class LogFile:
    """A log of which any part can be read.

    A last line without a line end may be cut, and then its last number may be, too. It is taken for a
    whole line only if it ends with }, as MLPerf's lines do.

    Attributes:
        size: bytes of the log.
    """

    def __init__(self, file: IO[bytes]) -> None:
        """Read a file that can be read from anywhere."""
        self._file = file
        self._start, self._chunk, self._line_end = 0, b"", b""
        self.size = file.seek(0, os.SEEK_END)
        if self.part(self.size - 1, self.size) == b"}":
            self._line_end = b"\n"
            self.size += 1

    def part(self, start: int, stop: int) -> bytes:
        """The bytes between two offsets."""
        first = start - self._start
        if first >= 0 and stop <= self._start + len(self._chunk):
            return self._chunk[first : stop - self._start]
        if start < 0 or start >= stop:
            return b""
        self._file.seek(start)
        read = self._file.read(stop - start)
        return read + self._line_end if stop == self.size else read

    def chunks(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """The log from an offset on, in chunks that end where a line ends, small ones first.

        Yields:
            The offset of a chunk, and its bytes.
        """
        while start < self.size:
            chunk = self._whole_lines(start, min(LARGEST_CHUNK, max(SMALLEST_CHUNK, start // 16)))
            if not chunk:  # somebody has cut the file since it was opened
                return
            self._start, self._chunk = start, chunk
            yield start, chunk
            start += len(chunk)

    def _whole_lines(self, start: int, size: int) -> bytes:
        for length in (size, LONGEST_LINE):
            chunk = self.part(start, min(start + length, self.size))
            if start + len(chunk) >= self.size:
                break
            if cut := chunk.rfind(b"\n") + 1 or chunk.rfind(b"\r") + 1:
                return chunk[:cut]
        return chunk


def opened(stream: IO[bytes] | LogFile) -> LogFile:
    """A log as it is read: unpacked if it is compressed, without the colours of a terminal.

    Args:
        stream: the log; gzip, bzip2, xz and zstd are unpacked.

    Raises:
        Refused: it is damaged, or grows beyond what logs are packed to; or nothing here reads zstd.
    """
    if isinstance(stream, LogFile):
        return stream
    if not stream.seekable():
        stream = copy_of(stream, _LARGEST_PIPE)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    start = stream.read(8)
    stream.seek(0)
    for sign, (name, unpacks) in _PACKERS.items():
        if start.startswith(sign):
            try:
                stream = copy_of(unpacks(stream), max(FREE_GROWTH, GROWTH * size))
            except (Refused, MemoryError):
                raise
            except Exception as error:  # each unpacker has errors of its own
                raise Refused("no-text", f"it is no whole {name} file: {error}") from None
            break
    return _without_colours(LogFile(stream))


def copy_of(stream: Readable, most: int) -> IO[bytes]:
    """A copy of a stream, which can be read from anywhere.

    Raises:
        Refused: the stream holds more than so many bytes.
    """
    copy = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - it goes with the log
    while piece := stream.read(1 << 20):
        copy.write(piece)
        if copy.tell() > most:
            raise Refused("no-text", f"it holds more than {most} bytes: {GROWTH} times its size")
    return copy


def _without_colours(log: LogFile) -> LogFile:
    """A log without colours: whoever colours lines does so from the beginning."""
    if _ESCAPE not in log.part(0, min(BEGINNING, log.size)):
        return log
    copy = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - it goes with the log
    for _, chunk in log.chunks():
        copy.write(_COLOUR.sub(b"", chunk))
    return LogFile(copy)


def _zstd(stream: IO[bytes]) -> Readable:
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise Refused(
            "no-text", "it is compressed by zstd: run `pip install zstandard`, or unpack it first"
        ) from None
    return zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)


_PACKERS: dict[bytes, tuple[str, Callable[[Any], Readable]]] = {
    b"\x1f\x8b": ("gzip", lambda stream: gzip.GzipFile(fileobj=stream, mode="rb")),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
"""How a compressed file begins, what it is, and what reads it."""
