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
        yield _lines(title, total)
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


def _lines(title: str, total: int) -> Callable[[int], None]:
    """A line every ten seconds, and one at the end."""
    begin = said = time.monotonic()
    finished = False

    def show(done: int) -> None:
        nonlocal said, finished
        now = time.monotonic()
        seconds = now - begin
        if done == total and not finished:
            finished = True
            state = f"{done} in {seconds:.1f} s"
        elif 0 < done < total and now - said >= SECONDS_BETWEEN_LINES:
            said = now
            state = f"{done} of {total}, about {seconds * (total - done) / done:.0f} s left"
        else:
            return
        print(f"{title}: {state}", file=sys.stderr, flush=True)

    return show
