"""No process outlives its workflow: what a script starts ends when the script or its workflow does.

A script is a chain of three processes, all of one program:

    Snakemake - first: waits; in Snakemake's process group, so that Ctrl-C reaches it
                  second: waits; in a session of its own, so that a kill of the group does not
                      third: does the work, and starts workers, compilers, launchers

The first two adopt what loses its parent below them. So whichever one is killed, another one is
there to end all the others, and the kernel's word that nobody is left is what the script's end
waits for. Meanwhile all three hold the folder: see `reperf.building.hold.share_folder`.
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
"""How long the work, told to end by SIGTERM, may take before all of its processes are killed."""

_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_POLL_SECONDS = 0.1
_PR_SET_CHILD_SUBREAPER = 36

_told: list[int] = []


def keep_to_workflow() -> None:
    """Go on in a process that ends, with all of its descendants, when the workflow is gone.

    What called this waits, and ends as that process does. Told to end, the process gets SIGTERM,
    which raises SystemExit in it.
    """
    wanted = _wanted_by_workflow()
    if WORKFLOW in os.environ:
        share_folder(".")
    # Only now: had it gone before, the next workflow would not have seen the hold.
    if not wanted():
        sys.exit("reperf: the workflow that started this is gone")
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup asks for
            signal.signal(number, lambda number, _: _told.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _guard(wanted, SECONDS_TO_TIDY_UP + 5)
    os.setsid()
    first = os.getppid()
    _guard(lambda: os.getppid() == first, SECONDS_TO_TIDY_UP)
    _become_the_work()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none gets lost.

    Launchers start ranks in sessions of their own, which a process group does not reach.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Kill every process below this one, those that appear meanwhile too.

    A list of them misses one whose parent ends while the list is made. It is this process's child
    then, and that there is none any more is the kernel's word.
    """
    with suppress(ChildProcessError):
        while True:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)


def _wanted_by_workflow() -> Callable[[], bool]:
    """What tells whether the workflow that started this process still waits for it."""
    holder = os.environ.get(WORKFLOW)
    if holder is None:
        return lambda: True  # called by hand
    parent = os.getppid()
    above = psutil.Process().parents()
    workflow = next((process for process in above if str(process.pid) == holder), None)

    def wanted() -> bool:
        # A shell stands between the two: without it, Snakemake has stopped to wait as well.
        if workflow is None or os.getppid() != parent:
            return False
        try:
            return workflow.is_running() and workflow.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return wanted


def _guard(wanted: Callable[[], bool], seconds: float) -> None:
    """Go on in a child; this process stays, and ends with the child and all that is below it.

    Args:
        wanted: asked some times a second; once it says no, or a signal came, the child is to end.
        seconds: how long that may take.
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
    """Take signals as a program does that nobody waits with."""

    def end(number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is being done
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
