"""How far a cell's throughput moves between reports of one build: the noise between campaigns."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, log, sqrt
from statistics import mean, median, variance

from reperf.measuring.comparison import Cell, compare_tables, measured, names_of, rows_of
from reperf.measuring.margin_rule import t_bound
from reperf.measuring.report_sides import Side
from reperf.measuring.statistics import SIGNIFICANCE

LEAST_FREEDOM = 6  # the fewest differences from which a threshold is computed


@dataclass(frozen=True)
class CellNoise:
    """A cell that several campaigns have measured."""

    name: str  # of the cell
    # the logarithm of each campaign's throughput over the first's, which is 0
    changes: tuple[float, ...]
    within: float | None  # the coefficient of variation of its repeats, median of the campaigns

    @property
    def largest(self) -> float:
        """The largest change between two campaigns, as a share."""
        return exp(max(self.changes) - min(self.changes)) - 1

    @property
    def between(self) -> float:
        """The standard deviation between campaigns, what repeats contribute included."""
        return sqrt(variance(self.changes))


@dataclass(frozen=True)
class Noise:
    """Cells, and those that could not be compared: name -> why."""

    cells: tuple[CellNoise, ...]
    not_compared: dict[str, str]

    @property
    def freedom(self) -> int:
        """The number of independent differences between campaigns."""
        return sum(len(cell.changes) - 1 for cell in self.cells)

    @cached_property
    def threshold(self) -> float | None:
        """The change that noise exceeds in any cell in at most 5 % of comparisons of two campaigns.

        A share, from the pooled variance of all cells by Student's t, with Bonferroni's correction
        for their number; at least the largest change seen. None: too few differences.
        """
        if self.freedom < LEAST_FREEDOM:
            return None
        squares = sum((len(cell.changes) - 1) * cell.between**2 for cell in self.cells)
        quantile = t_bound(SIGNIFICANCE / 2 / len(self.cells), self.freedom)
        exceeded = exp(quantile * sqrt(2 * squares / self.freedom)) - 1
        return max(exceeded, *(cell.largest for cell in self.cells))

    @property
    def option(self) -> str | None:
        """The threshold as `reperf compare` takes it, rounded up to a tenth of a percent."""
        return None if self.threshold is None else f"{ceil(1000 * self.threshold) / 10:g}%"


def noise_of(sides: Sequence[Side]) -> Noise:
    """Compare two or more campaigns of one build with the first of them."""
    first, *others = sides
    changes: dict[Cell, list[float]] = defaultdict(lambda: [0.0])
    not_compared: dict[Cell, str] = {}
    for other in others:
        for cell in compare_tables(first.table, other.table, 0.0).cells:
            if cell.verdict.ratio:
                changes[cell.cell].append(log(cell.verdict.ratio.estimate))
            else:
                not_compared[cell.cell] = cell.reason
    names = dict(zip(changes, names_of(list(changes)), strict=True))
    cells = tuple(
        CellNoise(names[cell], tuple(known), _within(sides, cell))
        for cell, known in changes.items()
    )
    left = [cell for cell in not_compared if cell not in changes]
    reasons = zip(names_of(left), (not_compared[cell] for cell in left), strict=True)
    return Noise(cells, dict(reasons))


def _within(sides: Sequence[Side], cell: Cell) -> float | None:
    known = [list(measured(rows_of(side.table, [cell]))["throughput"]) for side in sides]
    spreads = [sqrt(variance(one)) / mean(one) for one in known if len(one) > 1]
    return median(spreads) if spreads else None
