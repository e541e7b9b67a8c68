"""How long the remaining runs will take, judged by those that are done."""


class Pace:
    """The time with a run in progress, divided by the number of runs that ended in it.

    That works for runs one after the other and for many at once in a queue: what counts is how
    often one ends. Time to build environments between runs does not count.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._busy = 0.0
        self._busy_at_last_end = 0.0
        self._running = 0
        self._ended = 0

    def started(self, now: float) -> None:
        """A run has begun at `now`, in seconds."""
        if self._running == 0:
            self._since = now
        self._running += 1

    def ended(self, now: float, *, counts: bool = True) -> None:
        """A run has ended; one that is tried again does not count."""
        self._running -= 1
        if counts:
            self._ended += 1
            self._busy_at_last_end = self._busy_until(now)
        if self._running == 0:
            self._busy, self._since = self._busy_until(now), None

    def left(self, runs: int, now: float) -> float | None:
        """Seconds that so many runs will take; None before the first one has ended."""
        if not self._ended:
            return None
        each = self._busy_at_last_end / self._ended
        since_last_end = self._busy_until(now) - self._busy_at_last_end
        return max(0.0, each * runs - since_last_end)

    def _busy_until(self, now: float) -> float:
        return self._busy + (now - self._since if self._since is not None else 0.0)
