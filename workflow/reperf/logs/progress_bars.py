"""tqdm's progress bars, where they count what is trained: their elapsed time is the clock.

    100/1000 [01:40<15:00,  1.00s/it, loss=2.3]

Source: github.com/tqdm/tqdm, tqdm/std.py. The elapsed time is cut to whole seconds.
"""

from reperf.logs.clock import ELAPSED

BAR = r"(?<!\d){ITERATION}/(?P<total>\d{1,12}) \[{ELAPSED}<(?:[\d:]{1,20}|\?)[,\]]"
"""The pattern of a bar from its counts on."""


class DrawnBars:
    """What the bars of one rank have shown: each count is drawn again and again."""

    def __init__(self) -> None:
        self._shown: tuple[int, int] | None = None
        self._latest = 0.0
        self._bars: dict[int, tuple[int, float]] = {}
        """Of each epoch: the count that its bar showed first, and the time at which it began."""

    def time_of(self, epoch: int, count: int, elapsed: str) -> float | None:
        """When a count was shown first, in seconds on a clock that goes on through all bars.

        Returns:
            The time; None if the bar before it showed the same count, or none yet.
        """
        before, self._shown = self._shown, (epoch, count)
        if count == 0 or before == self._shown:
            return None
        # A line that stands in the wrong place must not move the clock of those behind it.
        if epoch not in self._bars or count <= self._bars[epoch][0]:
            self._bars[epoch] = count, self._latest
        time = self._bars[epoch][1] + ELAPSED.seconds(elapsed)
        self._latest = max(self._latest, time)
        return time
