"""The process guard: all that a step starts ends with the step, or with the workflow.

    Snakemake - shell - guard: waits, in Snakemake's process group, where Ctrl-C reaches it
                          step: works, in a session of its own; starts launchers, compilers, workers

The guard ends the step when Snakemake or the shell is gone; the kernel tells the step when the
guard is. Both adopt each process below them that loses its parent, and kill what is left: only a
kill of both at once leaves anything.
"""

import atexit
import ctypes
import os
import signal
import sys
import time
from contextlib import suppress

import psutil

from reperf.building.work_folder import CALL, lock_for_step

SECONDS_TO_TIDY_UP = 25
"""How long a step may take after SIGTERM before all of its processes are killed."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def start_guard() -> None:
    """Continue as the step, in a child; this process becomes its guard, and ends as the step does.

    When the step must end, it gets SIGTERM, which raises SystemExit in it.
    """
    guard, shell = os.getpid(), os.getppid()
    if CALL in os.environ and not (lock_for_step() and _is_wanted(shell)):
        sys.exit("reperf: the workflow that started this is gone")
    if step := os.fork():
        _guard(step, shell)
    os.setsid()
    adopt_orphans()
    signal.signal(signal.SIGTERM, _end)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != guard:
        sys.exit("reperf: the guard of this step is gone")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is lost."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Kill every process below this one, including those that appear meanwhile.

    A list of them misses one whose parent ends meanwhile. That one becomes this process's child,
    and the kernel says when there are no more children.
    """
    with suppress(ChildProcessError):
        while True:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)


def _guard(step: int, shell: int) -> None:
    adopt_orphans()
    signals: list[int] = []
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, lambda number, _: signals.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # so that it can be waited for
    latest = float("inf")
    while (ended := os.waitpid(step, os.WNOHANG)) == (0, 0):
        if time.monotonic() > latest:
            os.kill(step, signal.SIGKILL)
        elif latest == float("inf") and (signals or not _is_wanted(shell)):
            os.kill(step, signal.SIGTERM)
            latest = time.monotonic() + SECONDS_TO_TIDY_UP
        signal.sigtimedwait({signal.SIGCHLD}, 0.1)
    kill_descendants()
    code = os.waitstatus_to_exitcode(ended[1])
    os._exit(code if code >= 0 else 128 - code)


def _is_wanted(shell: int) -> bool:
    """Whether the shell and the workflow still wait; a call by hand is always wanted."""
    if CALL not in os.environ:
        return True
    with suppress(psutil.NoSuchProcess):
        workflow = psutil.Process(int(os.environ[CALL].split()[1]))
        return os.getppid() == shell and workflow.status() != psutil.STATUS_ZOMBIE
    return False


def _end(number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # already ending
    atexit.register(kill_descendants)  # the guard would, but it may be what has ended
    sys.exit(128 + number)
