"""The progress of long work: a bar on a terminal, a line now and then in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show on standard error how far the work is and how long the rest will take.

    Yields:
        a function to call, as often as you like, with the number of items done out of `total`.
    """
    if not sys.stderr.isatty():
        yield _Lines(title, total)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


class _Lines:
    """A line every ten seconds, and one at the end."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._begin = self._said = time.monotonic()
        self._finished = False

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        seconds = now - self._begin
        if done == self._total and not self._finished:
            self._finished = True
            self._say(f"{done} in {seconds:.1f} s")
        elif 0 < done < self._total and now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            left = seconds * (self._total - done) / done
            self._say(f"{done} of {self._total}, about {left:.0f} s left")

    def _say(self, state: str) -> None:
        print(f"{self._title}: {state}", file=sys.stderr, flush=True)
