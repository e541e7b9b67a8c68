"""Where progress goes: a terminal, a stream of plain lines, and the log of the full output."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

from reperf.progress.state import Line, Progress
from reperf.text import printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

_MOST_JOBS = 6
_SECONDS_BETWEEN_LOOKS = 1


class PlainLines:
    """Lines without escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def say(self, line: Line) -> None:
        """Show a line for good."""
        try:
            if self._stream:
                print(printable_lines(line.text), file=self._stream, flush=True)
        except (OSError, ValueError):
            self._stream = None  # its reader has gone

    def close(self) -> None:
        """Show no more than has been said."""


class LiveDisplay:
    """The same lines, and below them the work in progress, drawn once a second.

    The cursor stays visible: even a workflow that is killed leaves the terminal as it was.
    """

    def __init__(self, stream: TextIO, progress: Progress) -> None:
        from rich.console import Console  # noqa: PLC0415 - a tenth of a second, for terminals only
        from rich.live import Live  # noqa: PLC0415

        class OpenConsole(Console):
            def show_cursor(self, show: bool = True) -> bool:
                return False

        self._progress = progress
        self._console = OpenConsole(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=1 / _SECONDS_BETWEEN_LOOKS,
            transient=True,
        )
        self._live.start()

    def say(self, line: Line) -> None:
        from rich.text import Text  # noqa: PLC0415

        with suppress(OSError, ValueError):
            text = Text(printable_lines(line.text), style="red" if line.bad else "")
            self._console.print(text, soft_wrap=True)

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._live.stop()

    def _draw(self) -> "ConsoleRenderable":
        from rich.console import Group  # noqa: PLC0415
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        done, left = self._progress.head()
        width, height = self._console.size
        lines = [
            Text(f"  {line}", no_wrap=True, overflow="crop")
            for line in self._progress.doing(max(1, min(_MOST_JOBS, height - 3)))
        ]
        if not done:
            return Group(*lines)
        room = width - len(done) - len(left) - 4
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(self._progress.runs, self._progress.ended, width=min(40, room))
        head.add_row(done, *([bar] if room >= 5 else []), left)
        return Group(head, *lines)


def live_is_wanted(*streams: TextIO | None, color: bool) -> bool:
    """Whether the streams are a terminal that understands escapes, and nobody turned those off."""
    return (
        color
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        and all(stream is not None and stream.isatty() for stream in streams)
    )


class FullLog:
    """The full output in one file: Snakemake's, and that of the programs that it starts.

    Programs inherit this process's two output streams. So those are redirected to the file, while
    Python's own objects for them keep writing to where they did.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: IO[bytes] | None = path.open("ab", buffering=0)
        self._turned: list[tuple[str, TextIO, TextIO]] = []
        for name in ("stdout", "stderr"):
            self._turn(name)

    def write(self, text: str) -> None:
        """Add a piece of text; a full disk does not end a workflow."""
        with suppress(OSError, ValueError):
            if self._file:
                self._file.write(text.encode("utf-8", "backslashreplace"))

    def _turn(self, name: str) -> None:
        stream = getattr(sys, name)
        assert self._file
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
            number = stream.fileno()
            kept = open(  # noqa: PTH123, SIM115 - closed when it is turned back
                os.dup(number), "w", encoding=stream.encoding, errors=stream.errors, buffering=1
            )
            os.dup2(self._file.fileno(), number)
            setattr(sys, name, kept)
            self._turned.append((name, stream, kept))

    def close(self) -> None:
        """Give the streams back."""
        for name, stream, kept in self._turned:
            with suppress(OSError, ValueError):
                kept.flush()
            os.dup2(kept.fileno(), stream.fileno())
            if getattr(sys, name) is kept:
                setattr(sys, name, stream)
            with suppress(OSError, ValueError):
                kept.close()
        self._turned = []
        if self._file:
            self._file.close()
            self._file = None


def screen(progress: Progress, *, color: bool) -> PlainLines | LiveDisplay:
    """A live display on a terminal, plain lines elsewhere."""
    if live_is_wanted(sys.stdout, sys.stderr, color=color):
        return LiveDisplay(sys.stderr, progress)
    return PlainLines(sys.stderr)
