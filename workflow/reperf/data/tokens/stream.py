"""The text of a stream of tokens, cut into pieces of whole lines without holding it."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from reperf.data.pieces import read_piece
from reperf.data.text.corpus import files_of
from reperf.data.tokens.vocabulary import END
from reperf.errors import ReperfError
from reperf.files import reading

LAYOUT = f"text in UTF-8, with a line {END} between documents"
PIECE = 1 << 20
"""Bytes of text that are converted at a time."""
LONGEST_LINE = 1 << 26

_END = re.compile(rf"^{re.escape(END)}\s*?(?:\n|\Z)", re.MULTILINE)


class Stream:
    """The text of a file, or of all files of a folder in the order of their paths.

    Args:
        text: the file or folder.
        parts: into how many it is converted.
        layout: of what it may hold, in words.

    Attributes:
        pieces: into how many the text is cut: equally many for each part.

    Raises:
        ReperfError: there is no such text, or it is empty.
    """

    def __init__(self, text: Path, parts: int, layout: str = LAYOUT) -> None:
        self._layout = layout
        self._paths = files_of(text, layout)
        with reading(text):
            sizes = [path.stat().st_size for path in self._paths]
        self._starts = list(accumulate(sizes, initial=0))
        if not self._starts[-1]:
            raise ReperfError(f"{text}: an empty text; allowed: {self._layout}")
        self._share = -(-self._starts[-1] // (parts * PIECE))
        self.pieces = parts * self._share

    def of_part(self, part: int) -> range:
        """The numbers of a part's pieces."""
        return range(part * self._share, (part + 1) * self._share)

    def piece(self, number: int) -> Iterator[tuple[str, bool]]:
        """The documents of a piece: near equal in bytes, it begins with a line, as the next does.

        Yields:
            The text of a document, or of what lies of it in the piece, and whether it ends there.

        Raises:
            ReperfError: a file cannot be read, has changed or is not UTF-8, or a line is too long.
        """
        begin, end = (self._edge(one) for one in (number, number + 1))
        at = bisect_right(self._starts, begin) - 1
        while begin < end:
            path, start, following = self._paths[at], self._starts[at], self._starts[at + 1]
            until = min(end, following)
            content = read_piece(path, begin - start, until - begin, self._layout)
            *whole, last = _END.split(content)
            yield from ((document, True) for document in whole)
            if last:
                yield last, until == following
            begin, at = until, at + 1

    def _edge(self, number: int) -> int:
        """Where a piece begins, in the whole text: at the first line from its even share on."""
        size = self._starts[-1]
        even = size * number // self.pieces
        at = bisect_right(self._starts, even) - 1
        if even in (self._starts[at], size):
            return even
        path, offset = self._paths[at], even - self._starts[at]
        with reading(path), path.open("rb") as stream:
            stream.seek(offset - 1)
            rest = stream.readline(LONGEST_LINE)
        if len(rest) == LONGEST_LINE:
            raise ReperfError(
                f"{path}: byte {offset}: a line of more than {LONGEST_LINE} bytes; "
                f"allowed: {self._layout}"
            )
        return even - 1 + len(rest)
