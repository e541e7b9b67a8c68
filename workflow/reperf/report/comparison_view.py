"""A comparison as pages show it: each cell's change, around zero."""

from dataclasses import dataclass
from functools import cached_property

from reperf.measuring.comparison_output import Compared, first_lines, last_lines, summary
from reperf.measuring.statistics import Ratio
from reperf.report.scale import Scale


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
