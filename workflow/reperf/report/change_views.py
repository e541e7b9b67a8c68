"""Changes as pages draw them: of cells between two reports, and of a cell over time."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from reperf.measuring.comparison_output import Compared, first_lines, last_lines, lines_of, summary
from reperf.measuring.history import Line, Point
from reperf.measuring.statistics import Ratio
from reperf.report.scale import Scale

HEIGHT = 80  # pixels of a drawing
_MARGIN = 10
_LEAST_SPAN = 0.02  # the smallest span of the axis of throughputs, as a share


@dataclass(frozen=True)
class ComparisonView:
    """What the template needs of a comparison."""

    compared: Compared

    @cached_property
    def sentence(self) -> str:
        """The result, in a sentence."""
        cells = self.compared.comparison.cells
        slower = sorted(
            (cell.verdict.ratio.estimate, self.compared.names[cell.cell])
            for cell in cells
            if cell.verdict.judgement == "slower" and cell.verdict.ratio
        )
        if not slower:
            return summary(self.compared)
        change, name = slower[0]
        return f"{len(slower)} of {len(cells)} slower, most {name}: {100 * (change - 1):.1f} %"

    @cached_property
    def lines(self) -> tuple[list[str], list[str]]:
        """What to read before the table, and after it."""
        after = [line for line in last_lines(self.compared) if line != self.sentence]
        return first_lines(self.compared), after

    @cached_property
    def scale(self) -> Scale:
        """The axis of all changes, which holds the threshold on either side of zero."""
        known = [cell.verdict.ratio for cell in self.compared.comparison.cells]
        ends = [end for ratio in known if ratio for end in _ends(ratio)]
        band = self.compared.threshold
        return Scale.of([1 - band, 1 + band, *ends])


def _ends(ratio: Ratio) -> tuple[float, ...]:
    return tuple(end for end in (ratio.low, ratio.estimate, ratio.high) if end is not None)


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
