"""Lines that say how long the iterations since the line before took, or one of them on average.

How many these are they do not say, but their program prints at the multiples of a fixed interval,
which therefore divides the number of each line and the distance between any two. So a missing line
is a hole in the run, and its time is not taken from the next one.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from math import gcd

from reperf.logs.clock import Clock, tick
from reperf.logs.format import Read, Record


class Spans:
    """How many iterations the lines of one rank stand for."""

    def __init__(self, before: int = 0) -> None:
        """Begin before the first line.

        Args:
            before: how many iterations before a multiple of its interval the program prints.
        """
        self._before = before
        self._first: int | None = None
        self._newest = self._interval = 0

    def of(self, iteration: int) -> int | None:
        """How many iterations the next line covers: 0 if lines were missing, None of the first."""
        if self._first is None or iteration <= self._first:
            self._first = self._newest = iteration
            self._interval = 0
            return None
        if iteration <= self._newest:  # printed again
            return self._interval
        interval = gcd(self._interval, iteration - self._newest, iteration + self._before)
        # Lines were missing so far: what the previous ones covered was less than it seemed.
        shrank = interval < self._interval
        self._newest, self._interval = iteration, interval
        return 0 if shrank else interval


def durations_since(
    clock: Clock | None = None,
    duration_in: float = 1.0,
    *,
    of_all: bool = False,
    before: int = 0,
    newest: int | None = None,
) -> Callable[[], Read]:
    """A maker of readers for one log, as `Format.remembering` wants it.

    Args:
        clock: of the group `time`, if lines may have one.
        duration_in: seconds in the unit of the group `duration`.
        of_all: whether that is the time of all iterations since the line before, not their mean.
        before: how many iterations before a multiple of its interval the program prints.
        newest: the iterations of which it is the mean, if those are always as many: a line that
            stands for others tells no time.
    """

    def remembering() -> Read:
        spans: defaultdict[tuple[int, ...], Spans] = defaultdict(partial(Spans, before))

        def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
            found = {name: text.decode() for name, text in match.groupdict().items() if text}
            try:
                time = clock.seconds(found["time"]) if "time" in found else None
            except ValueError:
                return None
            iteration, printed = int(found["iteration"]), found["duration"]
            if "rank" in found:
                rank = (*rank, int(found["rank"]))
            span = spans[rank].of(iteration)
            if span is None:  # a mean tells the time of the last iteration, at least
                span = 0 if of_all else 1
            seconds = duration_in * (1 if of_all else span)
            return Record(
                iteration=iteration,
                rank=rank,
                epoch=int(found.get("epoch", 0)),
                time=time,
                duration=float(printed) * seconds if newest in (None, span) or span == 1 else None,
                span=span,
                tick=tick(found["time"]) if time is not None else tick(printed) * seconds,
                rate=float(found["rate"]) if "rate" in found else None,
                text=match[0],
            )

        return read

    return remembering
