"""tqdm's progress bars, where they count what is trained: their elapsed time is the clock.

     10%|#         | 100/1000 [01:40<15:00,  1.00s/it, loss=2.3]

Source: github.com/tqdm/tqdm, tqdm/std.py. The elapsed time is cut to whole seconds.
"""

import re
from dataclasses import dataclass, field

from reperf.logs.clock import ELAPSED

BAR = (
    r"(?P<percent>\d{1,3})%\|[^|\r\n]{0,1000}\| *(?<!\d){ITERATION}/(?P<total>\d{1,12}) \[{ELAPSED}<(?:[\d:]{1,20}|\?)"
    r"(?:, *(?:{PACE}s/it|{PACES}it/s)(?=[,\]])|[,\]])"
)
"""The pattern of a bar, but for its name."""
_ROUNDED = 1.0
"""By how much the percentage that a bar shows may be off."""


def miscounted(match: re.Match[bytes]) -> str:
    """What is wrong with a bar whose count is not the share of its total; empty if nothing."""
    percent, count, total = (int(match[group]) for group in ("percent", "iteration", "total"))
    if abs(percent * total - 100 * count) <= _ROUNDED * total:
        return ""
    return f"a progress bar shows {count} of {total} as {percent} %"


_REMEMBERED = 1 << 12
"""How many counts lie between the bars of two nodes, at most: launchers hold lines back."""
_FAR = 50
"""Counts: nodes step together, so that a bar so far behind is another program's, or held back."""
_PAUSE, _CUT = 3.0, 2.0
"""How many times as long a count takes as those before it, and how many seconds more, at most, where
nothing but the clock tells whose it is."""
_DRIFT = 0.1, 5.0
"""By which share, and by how many seconds, two bars of one training may drift apart."""


@dataclass
class _Epoch:
    """What was shown of one epoch of one run."""

    first: int
    """The count that was shown first."""
    began: float
    """When the bar began, on the clock of all bars."""
    latest: int = 0
    """The highest count."""
    elapsed: dict[int, float] = field(default_factory=dict)
    """Of the newest counts: the seconds that were first shown with each."""
    behind: float | None = None
    """By how many seconds the bar that is drawn again from far behind differs from this one."""
    over: bool = False
    """Whether what stands behind these counts may begin another run."""

    def goes_on(self, count: int, seconds: float) -> bool:
        """Whether the bar that has shown the highest count may have shown this one next."""
        at, steps = self.elapsed[self.latest], count - self.latest
        usual = at / self.latest * steps
        return 0 < steps <= _FAR and 0 <= seconds - at <= _PAUSE * usual + _CUT


class DrawnBars:
    """What the bars of one rank have shown: each count is drawn again and again.

    Without labels, the bars of all nodes of a launch may stand in one log: they are one run's. A run
    announces itself, where the program does so, before any of its bars counts. Else, all its bars
    are drawn with a count of 0 before any counts, for nodes step together.
    """

    def __init__(self) -> None:
        self._epochs: dict[int, _Epoch] = {}
        self._latest = 0.0
        self._shown: tuple[int, int] | None = None
        self._zeros = False
        """Whether bars are drawn before they count."""
        self._announced = False
        self._several = False
        """Whether there is more than one bar."""
        self._left: _Epoch | None = None
        """What was shown before a bar that is not announced began again."""
        self.mixed = False
        """Whether the bar before that went on in it."""
        self._apart = 0.0

    @property
    def tick(self) -> float:
        """Within how many seconds a time is known: bars of several nodes began at several times."""
        return 1.0 + self._apart

    def announce(self) -> None:
        """Take notice that a run announces itself, or one node of a run."""
        self._announced = True
        for known in self._epochs.values():
            known.over = True

    def time_of(self, epoch: int, count: int, elapsed: str) -> float | None:
        """When a count was shown first, in seconds on a clock that goes on through all bars.

        Returns:
            The time; None if a bar has shown this count or a higher one, or if none is shown yet. Of
            a bar that cannot be of the same training, the time that it shows itself: a count that
            has two times is measured nowhere.
        """
        before, self._shown = self._shown, (epoch, count)
        known = self._epochs.get(epoch)
        if count == 0:
            self._zeros = True
            self._several = self._several or before == (epoch, 0)
            if known is not None and not self._announced:
                known.over = True
            return None
        seconds = ELAPSED.seconds(elapsed)
        again = known is not None and count <= known.first and before != (epoch, count)
        # Behind another bar's 0, a bar that had begun before may go on.
        over = known is not None and known.over and not known.goes_on(count, seconds)
        again = again or (over and before == (epoch, 0))
        # A line that stands in the wrong place must not move the clock of those behind it.
        if known is None or (again and (known.over or not (self._zeros or self._announced))):
            self._left, self.mixed = None if self._announced else known, False
            known = self._epochs[epoch] = _Epoch(count, self._latest)
        elif self._is_left(known, count, seconds, before):
            self.mixed = True
            return known.began + seconds
        elif count <= known.latest:
            self._compare(known, count, seconds)
            if before is None or not 0 < before[1] <= count:  # it has begun anew
                known.behind = None
            return known.began + seconds if self._drifts(known, count, seconds) else None
        known.latest = count
        known.elapsed[count] = seconds
        if len(known.elapsed) > _REMEMBERED:
            del known.elapsed[next(iter(known.elapsed))]
        time = known.began + seconds
        # Another bar, whose clock is behind, may be the first to show it.
        if self._several and time >= self._latest - self.tick:
            time = max(time, self._latest)
        self._latest = max(self._latest, time)
        return time

    def _is_left(
        self, known: _Epoch, count: int, seconds: float, before: tuple[int, int] | None
    ) -> bool:
        """Whether a bar that had begun before this one goes on, as another program's may not."""
        if self._left is None or not self._left.goes_on(count, seconds):
            return False
        back = before is not None and before[1] - count > _FAR
        return back or (count > known.latest and not known.goes_on(count, seconds))

    def _compare(self, known: _Epoch, count: int, seconds: float) -> None:
        """Learn from a count that was shown before how far the clocks of several bars are apart."""
        self._several = self._several or count < known.latest
        if self._several and count in known.elapsed:
            self._apart = max(self._apart, abs(seconds - known.elapsed[count]))

    def _drifts(self, known: _Epoch, count: int, seconds: float) -> bool:
        """Whether a bar that is drawn from far behind counts at another speed."""
        if count not in known.elapsed or known.latest - count < _FAR or count <= known.first:
            return False
        behind = seconds - known.elapsed[count]
        known.behind = behind if known.behind is None else known.behind
        share, least = _DRIFT
        return abs(behind - known.behind) > max(least, share * max(seconds, known.elapsed[count]))
