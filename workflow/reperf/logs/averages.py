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

from reperf.logs.format import Format, Read, Record, read_groups


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
    *,
    of_all: bool = False,
    before: int = 0,
    newest: int | None = None,
    within_epochs: bool = False,
) -> Callable[[Format], Read]:
    """A maker of readers for one log, as `Format.remembering` wants it.

    Args:
        of_all: whether `duration` is the time of all iterations since the line before, not their
            mean.
        before: how many iterations before a multiple of its interval the program prints.
        newest: the iterations of which it is the mean, if those are always as many: a line that
            stands for others tells no time.
        within_epochs: whether it begins again with each epoch, by the group `batch`.
    """

    def remembering(log_format: Format) -> Read:
        spans: defaultdict[tuple[int, ...], Spans] = defaultdict(partial(Spans, before))

        def covered(match: re.Match[bytes], rank: tuple[int, ...]) -> tuple[int, int]:
            span = spans[rank].of(int(match["iteration"]))
            if span is None:  # a mean tells the time of the last iteration, at least
                span = 0 if of_all else 1
            if within_epochs:
                span = min(span, int(match["batch"]))
            return span, 1 if of_all else span

        def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
            record = read_groups(log_format, match, rank, covered)
            if record is None or newest in (None, record.span) or record.span == 1:
                return record
            return record._replace(duration=None)

        return read

    return remembering
