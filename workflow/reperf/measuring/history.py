"""Reports of one thing over time: how each cell's throughput went, and where it stepped."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import exp, log, pi, sqrt
from pathlib import Path
from statistics import median, variance

import pandas as pd

from reperf.errors import ReperfError
from reperf.measuring.comparison import (
    Cell,
    cells_of,
    measured,
    names_of,
    rows_of,
    why_not_comparable,
)
from reperf.measuring.report_sides import Differences, Side, differences, read_report
from reperf.records.cell_key import parts_of
from reperf.text import count

FEWEST = 5
"""Points of a cell in which a step is looked for: of fewer, nobody knows how they scatter."""
_PENALTY = 15.0
"""What a step costs, in variances of a point. By simulation, 2 to 7 % of cells without a step show
one: docs/comparing.md."""
_TO_SIGMA = 1.4826 / sqrt(2)
"""From a median distance of neighbours to a standard deviation, where points are normal."""
_MEDIANS = sqrt(pi / 2)  # the standard error of a median over that of a mean, likewise
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Point:
    """A cell in one report."""

    side: Side
    runs: pd.DataFrame = field(repr=False)  # its measured rows
    date: str  # when its first run began, ISO 8601; or the day that the report's path names

    @cached_property
    def throughput(self) -> float:
        """Median of the repeats."""
        return float(self.runs["throughput"].median())

    @property
    def error(self) -> float:
        """The standard error of its logarithm, by the spread of the repeats; 0: a single one."""
        logs = [log(value) for value in self.runs["throughput"]]
        return _MEDIANS * sqrt(variance(logs) / len(logs)) if len(logs) > 1 else 0.0

    @property
    def commits(self) -> list[str]:
        """Those of reperf that its runs name."""
        return sorted(set(self.runs["commit"]) - {""})

    @property
    def builds(self) -> list[str]:
        """What its framework came from."""
        keys = set(self.runs["key"]) - {""}
        return sorted({value for key in keys for name, value in parts_of(key) if name == "build"})


@dataclass(frozen=True)
class Step:
    """Where a cell's throughput went to another level."""

    at: int  # the first point of the new level
    ratio: float  # the new level over the one before it
    differences: Differences = field(default_factory=dict)
    """Between that point and the one before it."""


@dataclass(frozen=True)
class Line:
    """A cell over time."""

    cell: Cell
    name: str
    unit: str
    points: tuple[Point, ...]  # in the order of time
    levels: tuple[float, ...]
    """The throughput of each point's level: the median of all points between two steps."""
    steps: tuple[Step, ...]
    not_comparable: tuple[str, ...]
    """Earlier points that cannot stand beside the newest one, and why."""


@dataclass(frozen=True)
class History:
    """All cells, and what was left out."""

    lines: tuple[Line, ...]
    left_out: tuple[str, ...]


def history_of(folder: Path, threshold: float) -> History:
    """Read all reports in a folder and the folders below it.

    Args:
        folder: of archives, or of reports' folders.
        threshold: the smallest step that matters, as a share.

    Raises:
        ReperfError: it is not a folder, or has fewer than two reports.
    """
    if not folder.is_dir():
        raise ReperfError(f"{folder}: no such folder; allowed: a folder of archives or reports")
    sides, left_out = [], []
    for path in _reports_below(folder):
        try:
            side = read_report(path)
        except ReperfError as error:
            left_out.append(str(error))
            continue
        if side is None:
            left_out.append(f"{path}: is not the archive of a suite")
        else:
            sides.append(side)
    points: dict[Cell, list[Point]] = {}
    seen: set[tuple[str, ...]] = set()
    for side in sides:
        for cell, rows in cells_of(measured(side.table)).items():
            logs = tuple(sorted(set(rows["log_sha256"]) - {""}))
            dates = sorted(set(rows["date"]) - {""}) or _DAY.findall(str(side.path))[-1:]
            if not dates:
                left_out.append(f"{side.path}: does not say when it was measured, nor in its name")
                break
            if logs and logs in seen:  # an archive beside the report that it is of
                continue
            seen.add(logs)
            points.setdefault(cell, []).append(Point(side, rows, dates[0]))
    if all(len(some) < 2 for some in points.values()):
        used = {point.side.path for some in points.values() for point in some}
        alone = ", and no cell in two of them" if len(used) > 1 else ""
        why = f"; {left_out[0]}" if left_out else ""
        raise ReperfError(
            f"{folder}: {count(len(used), 'report')} in it{alone}; allowed: two or more archives, "
            f"report folders or measurements.csv of different runs{why}"
        )
    names = names_of(list(points))
    many = sum(len(some) >= FEWEST for some in points.values())
    ordered = {
        cell: _comparable(sorted(some, key=lambda point: point.date))
        for cell, some in points.items()
    }
    usual = median([_scatter(comparable) for comparable, _ in ordered.values()] or [0.0])
    lines = tuple(
        _line(cell, name, *ordered[cell], scatter=usual, threshold=threshold, cells=many)
        for cell, name in zip(points, names, strict=True)
    )
    return History(lines, tuple(left_out))


def _reports_below(folder: Path) -> Iterator[Path]:
    """Archives, and report folders' tables: a report's joined table, else those of its suites."""
    yield from sorted(folder.rglob("*.zip"))
    tables = sorted(folder.rglob("measurements.csv"))
    joined = {table.parent for table in tables}
    for table in tables:
        if table.parts[-4:-2] != ("results", "suites") or table.parents[2] not in joined:
            yield table


def _comparable(points: Sequence[Point]) -> tuple[list[Point], tuple[str, ...]]:
    """The points that may stand beside the newest, and why the others may not."""
    *earlier, newest = points
    comparable, reasons = [], []
    for point in earlier:
        if why := why_not_comparable(point.runs, newest.runs):
            reasons.append(f"{point.side.path}: {why}")
        else:
            comparable.append(point)
    return [*comparable, newest], tuple(reasons)


def _scatter(points: Sequence[Point]) -> float:
    """The standard deviation of a point's logarithm: by neighbours, at least by its repeats."""
    logs = [log(point.throughput) for point in points]
    apart = [abs(after - before) for before, after in pairwise(logs)]
    return max(_TO_SIGMA * median(apart or [0.0]), median(point.error for point in points))


def _line(
    cell: Cell,
    name: str,
    points: list[Point],
    left: tuple[str, ...],
    *,
    scatter: float,
    threshold: float,
    cells: int,
) -> Line:
    logs = [log(point.throughput) for point in points]
    scatter = max(scatter, _scatter(points))
    starts = [0] if len(points) < FEWEST else steps_in(logs, scatter, threshold, cells)
    ends = [*starts[1:], len(logs)]
    levels = [median(logs[start:end]) for start, end in zip(starts, ends, strict=True)]
    steps = tuple(
        Step(at, exp(after - before), _differing(cell, points[at - 1], points[at]))
        for at, before, after in zip(starts[1:], levels[:-1], levels[1:], strict=True)
    )
    of_points = [
        exp(level)
        for level, start, end in zip(levels, starts, ends, strict=True)
        for _ in range(start, end)
    ]
    unit = str(points[-1].runs["unit"].iloc[0])
    return Line(cell, name, unit, tuple(points), tuple(of_points), steps, left)


def _differing(cell: Cell, before: Point, after: Point) -> Differences:
    rows = rows_of(before.side.table, [cell]), rows_of(after.side.table, [cell])
    return differences(before.side, after.side, rows)


def steps_in(
    values: Sequence[float], scatter: float, threshold: float = 0.0, cells: int = 1
) -> list[int]:
    """Where levels begin in a series: the partition with the least squares and the fewest levels.

    Optimal partitioning with a cost of each level: B. Jackson and others, An Algorithm for Optimal
    Partitioning of Data on an Interval, IEEE Signal Processing Letters 12 (2005), 105-108; R.
    Killick, P. Fearnhead and I. A. Eckley, Optimal Detection of Changepoints with a Linear
    Computational Cost, JASA 107 (2012), 1590-1598. Then levels are joined that differ by less than
    the threshold.

    Args:
        values: logarithms of throughputs, in the order of time.
        scatter: their standard deviation around a level.
        threshold: the smallest step that matters, as a share.
        cells: the number of such series; more cells make a step cost more.

    Returns:
        The index of the first value of each level, 0 for the first.

    Examples:
        >>> steps_in([0.0, 0.001, -0.001, 0.0, -0.05, -0.051], 0.001)
        [0, 4]
    """
    unit = max(scatter, 1e-9) ** 2
    penalty = _PENALTY + 2 * log(max(cells, 1))
    sums, squares = [0.0], [0.0]
    for value in values:
        moved = value - values[0]
        sums.append(sums[-1] + moved)
        squares.append(squares[-1] + moved**2)
    best, last = [-penalty], [0]
    for end in range(1, len(values) + 1):
        costs = [
            best[start]
            + penalty
            + (squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start))
            / unit
            for start in range(end)
        ]
        last.append(min(range(end), key=costs.__getitem__))
        best.append(costs[last[-1]])
    starts: list[int] = []
    end = len(values)
    while end:
        end = last[end]
        starts.insert(0, end)
    while len(starts) > 1:
        ends = [*starts[1:], len(values)]
        levels = [median(values[a:b]) for a, b in zip(starts, ends, strict=True)]
        jumps = [abs(after - before) for before, after in pairwise(levels)]
        least = min(range(len(jumps)), key=jumps.__getitem__)
        if exp(jumps[least]) - 1 > threshold:
            break
        del starts[least + 1]
    return starts
