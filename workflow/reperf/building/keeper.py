"""No process outlives its workflow: what a script starts ends when the script or its workflow does.

A script is a chain of three processes, all of one program:

    Snakemake - first: waits; in Snakemake's process group, so that Ctrl-C reaches it
                  second: waits; in a session of its own, so that a kill of the group does not
                      third: does the work, and starts workers, compilers, launchers

The first two adopt any process below them that loses its parent. So whichever of the three is
killed, another is there to end the rest, and the script does not end before the kernel says that
none is left. Meanwhile all three hold the folder: see `reperf.building.hold.share_folder`.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from reperf.building.hold import WORKFLOW, share_folder

SECONDS_TO_TIDY_UP = 25
"""How long the work may take after SIGTERM before all of its processes are killed."""

_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_POLL_SECONDS = 0.1
_PR_SET_CHILD_SUBREAPER = 36

_told: list[int] = []


def keep_to_workflow() -> None:
    """Continue in a process that ends, with all of its descendants, when the workflow is gone.

    The calling process waits for it, and ends with the same status. When it must end, the process
    gets SIGTERM, which raises SystemExit in it.
    """
    wanted = _wanted_by_workflow()
    if WORKFLOW in os.environ:
        share_folder(".")
    # Asked again now: had the workflow gone before, the next one would not have seen our hold.
    if not wanted():
        sys.exit("reperf: the workflow that started this is gone")
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores them
            signal.signal(number, lambda number, _: _told.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _guard(wanted, SECONDS_TO_TIDY_UP + 5)
    os.setsid()
    first = os.getppid()
    _guard(lambda: os.getppid() == first, SECONDS_TO_TIDY_UP)
    _become_the_work()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is lost.

    Launchers start ranks in sessions of their own, which a process group does not reach.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Kill every process below this one, including those that appear meanwhile.

    A list of them misses one whose parent ends while the list is made. But that one is then this
    process's child, and the kernel says when there are no more children.
    """
    with suppress(ChildProcessError):
        while True:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)


def _wanted_by_workflow() -> Callable[[], bool]:
    """A function that tells whether the workflow that started this process still waits for it."""
    holder = os.environ.get(WORKFLOW)
    if holder is None:
        return lambda: True  # called by hand
    parent = os.getppid()
    above = psutil.Process().parents()
    workflow = next((process for process in above if str(process.pid) == holder), None)

    def wanted() -> bool:
        # A shell is between the two: once it is gone, Snakemake has stopped waiting as well.
        if workflow is None or os.getppid() != parent:
            return False
        try:
            return workflow.is_running() and workflow.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return wanted


def _guard(wanted: Callable[[], bool], seconds: float) -> None:
    """Continue in a child; this process waits, and ends when the child and all below it have.

    Args:
        wanted: asked a few times a second; when it says no, or on a signal, the child must end.
        seconds: how long the child may take to end.
    """
    adopt_orphans()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    child = os.fork()
    if child == 0:
        return
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    deadline = None
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if deadline is None and (_told or not wanted()):
            deadline = time.monotonic() + seconds
            os.kill(child, signal.SIGTERM)
        if deadline is not None and time.monotonic() > deadline:
            break
        if select.select([bell], [], [], _POLL_SECONDS)[0]:
            os.read(bell, 512)
    kill_descendants()
    code = os.waitstatus_to_exitcode(ended[1]) if ended[0] else -signal.SIGKILL
    os._exit(code if code >= 0 else 128 - code)


def _become_the_work() -> None:
    """Handle signals as an ordinary program does, not as one that waits for a child."""

    def end(number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # already ending
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)
    if _told:
        sys.exit(128 + _told[0])
