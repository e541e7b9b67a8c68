"""Pieces of files of text in UTF-8."""

import codecs
from pathlib import Path

from reperf.errors import ReperfError
from reperf.files import reading


def read_piece(path: Path, offset: int, size: int, allowed: str) -> str:
    """The text of so many bytes of a file, without the mark that it may begin with.

    Args:
        allowed: what the file should hold, for the refusal.

    Raises:
        ReperfError: it is shorter, or no UTF-8.
    """
    with reading(path), path.open("rb") as stream:
        stream.seek(offset)
        content = stream.read(size)
    if len(content) < size:
        raise ReperfError(f"{path}: became shorter while it was read; allowed: a text at rest")
    try:
        return content.removeprefix(b"" if offset else codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise not_utf8(path, offset, error, allowed) from None


def not_utf8(path: Path, offset: int, error: UnicodeDecodeError, allowed: str) -> ReperfError:
    """The refusal of bytes that are no UTF-8, which begin at an offset of a file."""
    found = error.object[error.start : error.end]
    return ReperfError(f"{path}: byte {offset + error.start}: got {found!r}; allowed: {allowed}")
