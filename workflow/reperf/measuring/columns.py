"""Columns of text that fit a terminal: some are left out, and the last one keeps its end."""

from collections.abc import Collection, Iterable, Sequence
from textwrap import wrap

READABLE = 30
"""How many characters of the last column are worth another column."""
_GAP = "  "
_CUT = ".."


class Columns:
    """How wide each column is, and which are shown."""

    def __init__(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        right: Collection[str],
        spared: Iterable[str] = (),
        width: int | None = None,
    ) -> None:
        """Measure the columns.

        Args:
            header: their names; names and texts that no row holds are seen as of no width.
            rows: what they hold.
            right: the names of those that are aligned on the right.
            spared: the names of those that may be left out, first ones first, where lines would be
                too long for the last column's end to be read.
            width: how long lines may be; None: as long as they are.
        """
        cells = [header, *rows]
        self._widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        self._right = [name in right for name in header]
        self._shown = list(range(len(header)))
        self._room = self._widths[-1]
        if width is None:
            return
        wanted = min(READABLE, self._widths[-1])
        waiting = [header.index(name) for name in spared]
        while (room := self._left_of(width)) < wanted and waiting:
            self._shown.remove(waiting.pop(0))
        self._room = max(room, len(_CUT) + 1)

    def _left_of(self, width: int) -> int:
        """How much of a line is left for its last column."""
        return width - sum(self._widths[at] + len(_GAP) for at in self._shown[:-1])

    def line(self, row: Sequence[str]) -> str:
        """One row, as long as lines may be."""
        last = row[-1]
        if len(last) > self._room:
            last = _CUT + last[len(_CUT) - self._room :]
        cells = [
            row[at].rjust(self._widths[at]) if self._right[at] else row[at].ljust(self._widths[at])
            for at in self._shown[:-1]
        ]
        return _GAP.join([*cells, last]).rstrip()


def folded(text: str, width: int | None, indent: str = "") -> list[str]:
    """A sentence on as many lines as it takes, all but the first of them set in.

    Args:
        text: of printable characters.
        width: how long lines may be; None: as long as the text.
        indent: what the first line begins with.
    """
    if width is None:
        return [indent + text]
    return wrap(
        text,
        max(width, READABLE),
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
