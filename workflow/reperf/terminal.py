"""Lines and tables for people, in a terminal or in a pipe."""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from shutil import get_terminal_size

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from reperf.text import printable

_NO_LIMIT = 1 << 16


def width_here() -> int | None:
    """How long lines of standard output may be; None where it is no terminal."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def announce(line: str) -> None:
    """Say what begins, to whoever waits; standard output holds nothing but findings."""
    print(f"{line} ..", file=sys.stderr, flush=True)


def table_lines(
    headings: Sequence[str],
    left: Collection[str],
    rows: Iterable[Sequence[str]],
    *,
    styles: Sequence[str] = (),
    width: int | None = None,
) -> Iterator[str]:
    """The lines of a table, no longer than `width`, with the rows' `styles` in a terminal.

    Args:
        left: the headings of columns of text; numbers are not broken and stand to the right.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for name in headings:
        text = name in left
        table.add_column(
            name, justify="left" if text else "right", no_wrap=not text, overflow="fold"
        )
    for at, row in enumerate(rows):
        table.add_row(*map(Text, map(printable, row)), style=styles[at] if styles else "")
    return rendered(table, width)


def rendered(what: RenderableType, width: int | None) -> Iterator[str]:
    """The lines in which rich shows something."""
    console = Console(width=width or _NO_LIMIT, highlight=False)
    with console.capture() as captured:
        console.print(what)
    yield from (line.rstrip() for line in captured.get().splitlines())
