r"""Cells of a summary as a table for LaTeX, ruled by the package booktabs.

\usepackage{booktabs}
\input{resnet50-fp32.tex}
"""

from typing import Any

import pandas as pd

from reperf.drawing.labels import series_of, title_of, unit_of
from reperf.printed import percent, plain_number, sharing
from reperf.text import printable

COLUMNS = ("System", "Topology", "Median", "Min", "Max", "Speedup", "Efficiency", "Runs")
_NUMBERS = ("throughput_median", "throughput_min", "throughput_max", "speedup")


def latex_of(cells: pd.DataFrame) -> str:
    """A suite's table; a cell without a number has its status in its place.

    Args:
        cells: the suite's rows of summary.csv.

    Returns:
        A tabular, below a comment with its title and unit.
    """
    named = zip(series_of(cells), cells.itertuples(), strict=True)
    table = pd.DataFrame([_row(series, cell) for series, cell in named], columns=COLUMNS)
    aligned = "ll" + "r" * (len(COLUMNS) - 2)
    made = table.to_latex(index=False, escape=True, column_format=aligned)
    return f"% {printable(title_of(cells))}; {printable(unit_of(cells))}\n{made}"


def _row(series: str, cell: Any) -> tuple[str, ...]:  # noqa: ANN401 - pandas' named tuple
    topology = ", ".join(filter(None, (cell.topology, sharing(cell))))
    place, runs = (printable(series), topology), str(cell.n)
    if pd.isna(cell.throughput_median):
        return *place, cell.status, "", "", "", "", runs
    numbers = (plain_number(getattr(cell, name)) for name in _NUMBERS)
    return *place, *numbers, percent(cell.efficiency), runs
