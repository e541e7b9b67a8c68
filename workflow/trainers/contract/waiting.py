"""Whom a rank waits for.

A rank that hangs says nothing, and in a pipeline all others soon stand still with it: so they say
for whom they wait.
"""

import os
import threading
import time
from collections import defaultdict
from contextlib import contextmanager

OR = " or "
"""Between the names of ranks, where it is not known for which of them."""
LONG = 10
"""Seconds after which a wait is told, once."""


class Waits:
    """Times a rank's waits, and says which of them take long.

    Args:
        who: the rank, as StepLog calls it.
    """

    def __init__(self, who):
        self.seconds = defaultdict(float)
        """What for -> how long in all."""
        self._who, self._now = who, None
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def of(self, what, whom):
        """Wait inside this block.

        Args:
            what: it waits for.
            whom: it comes from.
        """
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
