r"""Cells of a summary as a table for LaTeX, ruled by the package booktabs.

\usepackage{booktabs}
\input{resnet50-fp32.tex}
"""

import pandas as pd

from reperf.drawing.findings import Entry, entries_of
from reperf.drawing.labels import title_of, unit_of
from reperf.printed import ABSENT, percent, plain_number, sharing
from reperf.text import printable

COLUMNS = ("System", "Topology", "Median", "Min", "Max", "Speedup", "Efficiency", "Runs", "Remarks")
_NUMBERS = ("throughput_median", "throughput_min", "throughput_max", "speedup")


def latex_of(cells: pd.DataFrame) -> str:
    """A suite's table; a cell without a number has its status in its place.

    Args:
        cells: the suite's rows of summary.csv.

    Returns:
        A tabular, below a comment with its title and unit.
    """
    table = pd.DataFrame(map(_row, entries_of(cells)), columns=COLUMNS)
    aligned = f"ll{'r' * (len(COLUMNS) - 3)}l"
    made = table.to_latex(index=False, escape=True, column_format=aligned)
    return f"% {printable(title_of(cells))}; {printable(unit_of(cells))}\n{made}"


def _row(entry: Entry) -> tuple[str, ...]:
    cell = entry.row
    topology = ", ".join(filter(None, (cell.topology, sharing(cell))))
    place, runs = (printable(entry.series), topology), str(cell.n)
    if not entry.measured:
        return *place, cell.status, "", "", "", "", runs, ""
    numbers = [plain_number(getattr(cell, name)) for name in _NUMBERS] + [percent(cell.efficiency)]
    if entry.scattered:
        numbers[-2:] = [ABSENT, ABSENT]
    return *place, *numbers, runs, ", ".join(entry.marks)
