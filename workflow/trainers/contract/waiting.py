"""What ranks say that have nothing to log: that they live; in a pipeline, for whom they wait."""

import os
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress

OR = " or "  # between the names of ranks, where it is not known for which of them
LONG = 10  # seconds after which a wait is told, once
QUIET = "nothing new for"  # what a rank says of so many seconds, to show that it lives


class Pulse:
    """Reports that a rank has said nothing new for LONG seconds, for twice as long, ..."""

    def __init__(self, who):
        self._who, self._over = who, threading.Event()
        self.heard()
        with suppress(RuntimeError):  # under a limit of memory there may be no room for a thread
            threading.Thread(target=self._beat, daemon=True).start()

    def heard(self):
        self._since = time.perf_counter()

    def stop(self):
        self._over.set()

    def _beat(self):
        since = None
        while not self._over.wait(1):
            if since != self._since:
                since, after = self._since, LONG
            told = 0
            while time.perf_counter() - since >= after:
                told, after = after, 2 * after
            if told:
                os.write(1, f"{self._who}: {QUIET} {told} s\n".encode())


class Waits:
    """Times a rank's waits, and says which of them take long."""

    def __init__(self, who):
        self.seconds = defaultdict(float)  # what for -> how long in all
        self._who, self._now = who, None
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def of(self, what, whom):
        """Wait inside this block for something, `what`, that comes from `whom`."""
        begun = time.perf_counter()
        self._now = begun, whom
        try:
            yield
        finally:
            self._now = None
            self.seconds[what] += time.perf_counter() - begun

    def _watch(self):
        told = None
        while True:
            time.sleep(1)
            now = self._now
            if now and now != told and time.perf_counter() - now[0] > LONG:
                told = now
                os.write(1, f"{self._who}: waits for {now[1]}\n".encode())
