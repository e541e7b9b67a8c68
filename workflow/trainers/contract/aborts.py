"""Let launchers see which rank died first."""

import ctypes
import signal


def abort_late():
    """Delay an abort of this process by six seconds.

    Some frameworks abort a rank as soon as it loses another; their launchers look only once a
    second, and blame any rank that they find dead.
    """
    libc = ctypes.CDLL(None)
    # A handler is called with its signal's number, which is 6.
    libc.signal(signal.SIGABRT, libc.sleep)
