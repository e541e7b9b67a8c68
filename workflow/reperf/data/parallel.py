"""Work cut into parts, done by a pool of processes that end when they are no longer wanted."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from ctypes import Array
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from reperf.errors import ReperfError

Result = TypeVar("Result")
Tick = Callable[..., None]
"""Called with the number of items done since the last call, 1 if it is left out."""
SECONDS_BETWEEN_LINES = 10

_given: list[Any] = []
"""A worker's work and counters. The fork brings them: pickling a million names takes long."""


def run_parts(
    work: Callable[[int, Tick], Result], parts: int, workers: int, title: str, items: int
) -> list[Result]:
    """Do the work for every part, numbered from 0; the results are in the parts' order.

    A line every ten seconds, on standard error, says how far the work is. When one part fails, when
    the call is interrupted or when this process is killed, the workers end at once, wherever they
    are.

    Args:
        work: called with a part, and with a function to call after each of the part's items,
            or after several with their number.
        title: what is done, for the progress.
        items: of all parts together.

    Raises:
        ReperfError: a worker was killed. What a worker raises is raised here.
    """
    # Forked, not spawned: the script of a Snakemake rule cannot be imported by a new process.
    context = multiprocessing.get_context("fork")
    done = context.RawArray("Q", parts)  # items; each has one writer, so that no lock can stay held
    wanted, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(workers, parts), context, _begin, (work, done, wanted, held))
    show = progress_lines(title, items)
    with wanted, pool, held:
        futures = [pool.submit(_do, part) for part in range(parts)]
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, 0.2, FIRST_COMPLETED)
                for future in filter(finished.__contains__, futures):  # the first part's fault
                    future.result()
                show(sum(done))
        except BrokenProcessPool:
            raise ReperfError("a worker process was killed; memory may have run out") from None
    return [future.result() for future in futures]


def _begin(
    work: Callable[[int, Tick], Result], done: "Array[Any]", wanted: Connection, held: Connection
) -> None:
    """Make a worker ready; it ends when its parent closes its end of the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    held.close()
    Thread(target=lambda: (wanted.poll(None), os._exit(0)), daemon=True).start()
    _given[:] = work, done


def _do(part: int) -> Any:  # noqa: ANN401 - what the work returns
    work, done = _given

    def tick(items: int = 1) -> None:
        done[part] += items

    return work(part, tick)


def progress_lines(title: str, total: int) -> Callable[[int], None]:
    """Print to standard error how far work is: a line every ten seconds, and one at the end.

    Returns:
        a function to call, as often as you like, with the number of items done out of `total`.
    """
    begin = last = time.monotonic()
    finished = False

    def show(done: int) -> None:
        nonlocal last, finished
        now = time.monotonic()
        seconds = now - begin
        if done == total and not finished:
            finished = True
            state = f"{done} in {seconds:.1f} s"
        elif 0 < done < total and now - last >= SECONDS_BETWEEN_LINES:
            last = now
            state = f"{done} of {total}, about {seconds * (total - done) / done:.0f} s left"
        else:
            return
        print(f"{title}: {state}", file=sys.stderr, flush=True)

    return show
