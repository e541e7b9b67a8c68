"""The text of a file, or of all files of a folder: found without holding it, and read in pieces."""

import codecs
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from reperf.errors import ReperfError
from reperf.files import reading

UTF8 = "text in UTF-8"
END = "<|endoftext|>"  # what ends a document: in files a line of its own, in a vocabulary a token
PIECE = 1 << 20  # bytes of text that are converted at a time
LONGEST_LINE = 1 << 26
_BLOCK = 1 << 22
_HEAD = 1 << 16
_MARK = codecs.BOM_UTF8  # stands at the beginning of files that some editors write, and is not text
_GZIP = b"\x1f\x8b"
_END = re.compile(rf"^{re.escape(END)}\s*?(?:\n|\Z)", re.MULTILINE)


class TextFiles:
    """A file, or all files of a folder in the order of their paths, read as one text.

    Args:
        layout: what it may hold, in words, for refusals.

    Attributes:
        paths: the files.
        starts: where each file begins in the whole text, and where the last one ends, in bytes.
    """

    def __init__(self, text: Path, layout: str) -> None:
        self._layout = layout
        self.paths = _files_of(text, layout)
        with reading(text):
            self.starts = [*accumulate((path.stat().st_size for path in self.paths), initial=0)]
        if not self.starts[-1]:
            raise ReperfError(f"{text}: an empty text; allowed: {layout}")
        with reading(self.paths[0]), self.paths[0].open("rb") as stream:
            head = stream.read(_HEAD)
        if head.startswith(_GZIP):
            raise ReperfError(f"{self.paths[0]}: compressed by gzip; allowed: {layout}")
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
        except UnicodeDecodeError as error:
            raise _not_utf8(self.paths[0], 0, error, layout) from None

    def between(self, begin: int, end: int) -> Iterator[tuple[int, str]]:
        """The text from one place to another: the number of each file, and what lies in it."""
        number = bisect_right(self.starts, begin) - 1
        while begin < end:
            until = min(end, self.starts[number + 1])
            offset = begin - self.starts[number]
            yield number, read_piece(self.paths[number], offset, until - begin, self._layout)
            begin, number = until, number + 1


class Pieces(TextFiles):
    """A text, cut into pieces of whole lines, near equal in bytes, equally many for each part."""

    def __init__(self, text: Path, parts: int, layout: str) -> None:
        super().__init__(text, layout)
        self._share = -(-self.starts[-1] // (parts * PIECE))
        self.count = parts * self._share

    def of_part(self, part: int) -> range:
        """The numbers of a part's pieces."""
        return range(part * self._share, (part + 1) * self._share)

    def edges(self, number: int) -> tuple[int, int]:
        """Where a piece begins and ends, in the whole text: at the first line from there on."""
        return self._edge(number), self._edge(number + 1)

    def documents(self, number: int) -> list[tuple[str, bool]]:
        """The documents of a piece, or what lies of them in it, and whether each ends there.

        A document ends at a line END or with its file.
        """
        begin, end = self.edges(number)
        documents = []
        for file, content in self.between(begin, end):
            *whole, last = _END.split(content)
            documents += [(document, True) for document in whole]
            if last:
                documents.append((last, self.starts[file + 1] <= end))
        return documents

    def _edge(self, number: int) -> int:
        size = self.starts[-1]
        even = size * number // self.count
        file = bisect_right(self.starts, even) - 1
        if even in (self.starts[file], size):
            return even
        path, offset = self.paths[file], even - self.starts[file]
        with reading(path), path.open("rb") as stream:
            stream.seek(offset - 1)
            rest = stream.readline(LONGEST_LINE)
        if len(rest) == LONGEST_LINE:
            raise ReperfError(
                f"{path}: byte {offset}: a line of more than {LONGEST_LINE} bytes; "
                f"allowed: {self._layout}"
            )
        return even - 1 + len(rest)


def blocks_of_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The bytes of a file in blocks of whole lines, each with its offset, without a first mark.

    A line of more than LONGEST_LINE bytes is cut.
    """
    with reading(path), path.open("rb") as stream:
        at = len(_MARK) if stream.read(len(_MARK)) == _MARK else 0
        stream.seek(at)
        while block := stream.read(_BLOCK):
            block += stream.readline(LONGEST_LINE)
            yield at, block
            at += len(block)


def read_piece(path: Path, offset: int, size: int, layout: str) -> str:
    """The text of so many bytes of a file, without the mark that it may begin with.

    Refused if it is shorter, or not UTF-8; `layout` is what the file should hold.
    """
    with reading(path), path.open("rb") as stream:
        stream.seek(offset)
        content = stream.read(size)
    if len(content) < size:
        raise ReperfError(f"{path}: became shorter while it was read; allowed: a text at rest")
    try:
        return content.removeprefix(b"" if offset else _MARK).decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(path, offset, error, layout) from None


def _not_utf8(path: Path, offset: int, error: UnicodeDecodeError, layout: str) -> ReperfError:
    """The refusal of bytes that are not UTF-8; the bytes that were decoded begin at an offset."""
    wrong = error.object[error.start : error.end]
    return ReperfError(f"{path}: byte {offset + error.start}: got {wrong!r}; allowed: {layout}")


def _files_of(text: Path, layout: str) -> list[Path]:
    """The files of a text, in the order of their paths, without hidden ones."""
    files = [] if text.is_dir() else [text]

    def refuse(error: OSError) -> None:
        raise ReperfError(f"{error.filename}: cannot be read: {error.strerror}")

    # Not Path.rglob, which passes over a folder that it may not read.
    for folder, folders, names in os.walk(text, onerror=refuse) if not files else ():
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if Path(folder, name).is_symlink()]
        files += [Path(folder, name) for name in names + links if not name.startswith(".")]
    if not files:
        raise ReperfError(f"{text}: holds no files; allowed: {layout}")
    for path in files:
        with reading(path):
            if not stat.S_ISREG(path.stat().st_mode):
                raise ReperfError(f"{path}: is not a file; allowed: {layout}")
    return sorted(files)
