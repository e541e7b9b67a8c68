"""Work cut into parts, done by processes that end when they are no longer wanted.

Not concurrent.futures: its pool does not say which signal killed a process, and we would still need
the counters that show the progress of workers and tell them to end.
"""

import mmap
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import TypeVar

from reperf.errors import ReperfError

Result = TypeVar("Result")
Tick = Callable[..., None]
"""Called with the number of items done since the last call; left out, one."""


class _Unwanted(BaseException):
    """Another process has failed, or the one that asked for the work is gone."""


def run_parts(
    work: Callable[[int, Tick], Result], parts: int, workers: int, watch: Callable[[int], None]
) -> list[Result]:
    """Do the work for every part, numbered from 0; the results are in the parts' order.

    Worker k does the parts k, k + workers and so on. When one fails, when the call is interrupted
    or when this process is killed, the workers end at their next tick.

    Args:
        work: called with a part, and with a function to call after each of the part's items,
            or after several with their number.
        watch: called a few times a second with the number of items done.

    Raises:
        ReperfError: a worker was killed. What a worker raises is raised here.
    """
    # Forked, not spawned: the script of a Snakemake rule cannot be imported by a new process.
    context = multiprocessing.get_context("fork")
    workers = min(workers, parts)
    # How many items each worker has done, and a last number that is 1 when all must end.
    shared = memoryview(mmap.mmap(-1, 8 * (workers + 1))).cast("Q")
    results: dict[int, Result] = {}
    processes = {}
    try:
        for worker in range(workers):
            receiver, sender = context.Pipe(duplex=False)
            tick = partial(_tick, shared, worker, os.getpid())
            process = context.Process(
                target=_serve, args=(work, range(worker, parts, workers), tick, sender)
            )
            process.start()
            processes[receiver] = process
            sender.close()
        working = set(processes)
        while working:
            for receiver in wait(working, timeout=0.2):
                try:
                    answer = receiver.recv()
                except EOFError:
                    working.discard(receiver)
                    _check_end(processes[receiver])
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                results.update([answer])
            watch(sum(shared[:workers]))
    finally:
        shared[workers] = 1
        for process in processes.values():
            process.join()
    return [results[part] for part in range(parts)]


def _tick(shared: memoryview, worker: int, parent: int, items: int = 1) -> None:
    shared[worker] += items
    if shared[-1] or os.getppid() != parent:
        raise _Unwanted


def _serve(
    work: Callable[[int, Tick], Result], parts: range, tick: Tick, answers: Connection
) -> None:
    """A worker's life: send (part, result) for each part, or what was raised."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    try:
        for part in parts:
            answers.send((part, work(part, tick)))
    except (_Unwanted, BrokenPipeError):
        pass  # nobody listens any more
    except Exception as error:
        if not isinstance(error, ReperfError):
            error.add_note(traceback.format_exc())  # a traceback does not travel by itself
        with suppress(BrokenPipeError):
            answers.send(error)


def _check_end(process: multiprocessing.Process) -> None:
    process.join()
    if process.exitcode:
        end = f"killed by signal {-process.exitcode}" if process.exitcode < 0 else "lost"
        raise ReperfError(f"a worker process was {end}")
