"""A cell over time as pages draw it."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from reperf.measuring.comparison_output import lines_of
from reperf.measuring.history import Line, Point

HEIGHT = 80
"""Pixels of a drawing."""
_MARGIN = 10
_LEAST_SPAN = 0.02
"""The smallest span of the axis of throughputs, as a share."""


@dataclass(frozen=True)
class LineView:
    """The places of a cell's points: from the left in percent, from the top in pixels."""

    line: Line

    @cached_property
    def lefts(self) -> list[str]:
        """In proportion to time; side by side if all have the same time."""
        times = [_seconds(point) for point in self.line.points]
        first, span = times[0], times[-1] - times[0]
        last = max(1, len(times) - 1)
        shares = [(time - first) / span if span else at / last for at, time in enumerate(times)]
        return [f"{2 + 96 * share:.2f}" for share in shares]

    def top(self, throughput: float) -> str:
        """Of a throughput; the axis begins below the least."""
        low, high = self.ends
        return f"{_MARGIN + (HEIGHT - 2 * _MARGIN) * (high - throughput) / (high - low):.1f}"

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest throughput of the axis."""
        values = [point.throughput for point in self.line.points]
        middle = (min(values) + max(values)) / 2
        half = max(max(values) - middle, middle * _LEAST_SPAN / 2)
        return middle - half, middle + half

    @cached_property
    def stretches(self) -> list[tuple[str, str, str]]:
        """Of each level: where it begins, where it ends, and how high it is."""
        starts = [0, *(step.at for step in self.line.steps)]
        ends = [*(start - 1 for start in starts[1:]), len(self.line.points) - 1]
        return [
            (self.lefts[start], self.lefts[end], self.top(self.line.levels[start]))
            for start, end in zip(starts, ends, strict=True)
        ]

    @cached_property
    def steps(self) -> list[tuple[float, Point, list[str]]]:
        """Of each step: its ratio, the first point after it, and what differs from before."""
        points = self.line.points
        return [(s.ratio, points[s.at], lines_of(s.differences)) for s in self.line.steps]


def _seconds(point: Point) -> float:
    try:
        return datetime.fromisoformat(point.date).timestamp()
    except ValueError:
        return 0.0
