"""What a shared library says of itself: its sections, and the libraries that it needs."""

import mmap
import struct
from contextlib import contextmanager

_HEADER = struct.Struct("<6s34xQ10xHHH")
_SECTION = struct.Struct("<II16xQQ24x")
_DYNAMIC = struct.Struct("<qQ")
_NEEDED = 1
_ELF64 = b"\x7fELF\x02\x01"  # 64 bits, little-endian


class Unreadable(Exception):
    """The file is no 64-bit little-endian ELF file, or is cut, or holds what we do not know."""


@contextmanager
def opened(path):
    """Map a library into memory, of which only what is looked at is read.

    Args:
        path: of a 64-bit ELF file.

    Yields:
        Its bytes, and its sections: name -> (where it begins, its size), in bytes.

    Raises:
        Unreadable: it is something else, or what is read inside the block does not fit.
    """
    try:
        with open(path, "rb") as stream, _mapped(stream) as content:
            yield content, _sections(content)
    except (struct.error, ValueError, IndexError) as error:
        raise Unreadable(f"{path}: no 64-bit ELF file, or cut: {error}") from error


def needed(path):
    """The names of the libraries that the loader brings in with one, such as libcudart.so.11.0.

    Raises:
        Unreadable: it is no library.
    """
    with opened(path) as (content, sections):
        if ".dynamic" not in sections:
            return []
        start, size = sections[".dynamic"]
        names, _ = sections[".dynstr"]
        entries = _DYNAMIC.iter_unpack(content[start : start + size])
        return [_text(content, names + value) for tag, value in entries if tag == _NEEDED]


def _mapped(stream):
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _sections(content):
    magic, table, size, number, names = _HEADER.unpack_from(content)
    if magic != _ELF64:
        raise ValueError(f"begins with {magic!r}")
    headers = [_SECTION.unpack_from(content, table + size * each) for each in range(number)]
    if not headers:
        return {}
    strings = headers[names][2]
    return {_text(content, strings + name): place for name, _, *place in headers}


def _text(content, start):
    end = content.find(b"\0", start)
    if end < 0:
        raise ValueError(f"a name at byte {start} does not end")
    return content[start:end].decode()
