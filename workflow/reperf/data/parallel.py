"""Work cut into parts, done by a pool of processes that end when they are no longer wanted."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from reperf.errors import ReperfError

Result = TypeVar("Result")
SECONDS_BETWEEN_LINES = 10

_given: list[Callable[[int], Any]] = []
"""A worker's work. The fork brings it: pickling a million names takes long."""


def run_parts(work: Callable[[int], Result], parts: int, workers: int, title: str) -> list[Result]:
    """Do the work for every part, numbered from 0; the results are in the parts' order.

    Standard error says how far the work of this title is, every ten seconds and at the end. When
    one part fails, when the call is interrupted or when this process is killed, the workers end at
    once, wherever they are. What a worker raises is raised here.
    """
    # Forked, not spawned: the script of a Snakemake rule cannot be imported by a new process.
    context = multiprocessing.get_context("fork")
    wanted, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(workers, parts), context, _begin, (work, wanted, held))
    begin = last = time.monotonic()
    with wanted, pool, held:
        futures = [pool.submit(_do, part) for part in range(parts)]
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, SECONDS_BETWEEN_LINES, FIRST_COMPLETED)
                for future in filter(finished.__contains__, futures):  # the first part's fault
                    future.result()
                now, done = time.monotonic(), parts - len(pending)
                if 0 < done < parts and now - last >= SECONDS_BETWEEN_LINES:
                    last = now
                    left = f"about {(now - begin) * len(pending) / done:.0f} s left"
                    print(f"{title}: {done} of {parts} parts, {left}", file=sys.stderr, flush=True)
        except BrokenProcessPool:
            raise ReperfError("a worker process was killed; memory may have run out") from None
    print(
        f"{title}: {parts} parts in {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True
    )
    return [future.result() for future in futures]


def _begin(work: Callable[[int], Any], wanted: Connection, held: Connection) -> None:
    """Make a worker ready; it ends when its parent closes its end of the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    held.close()
    Thread(target=lambda: (wanted.poll(None), os._exit(0)), daemon=True).start()
    _given[:] = [work]


def _do(part: int) -> Any:  # noqa: ANN401 - what the work returns
    return _given[0](part)
