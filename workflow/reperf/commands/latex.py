"""`reperf latex`: a suite's table for a paper, ruled by the LaTeX package booktabs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reperf.errors import ReperfError
from reperf.layout import ALL_SUMMARY
from reperf.nearest import did_you_mean
from reperf.text import printable

if TYPE_CHECKING:
    from reperf.drawing.panels import Entry

HEADINGS = (
    "System",
    "Topology",
    "Median",
    "Min",
    "Max",
    "Speedup",
    "Efficiency",
    "Runs",
    "Remarks",
)
NUMBERS = ("throughput_median", "throughput_min", "throughput_max", "speedup")


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser(
        "latex",
        help="print a suite's table for LaTeX",
        description="Print the table of a suite for LaTeX, ruled by the package booktabs: "
        r"`reperf latex resnet50-fp32 > resnet50.tex`, and \input{resnet50.tex} in the paper.",
    )
    parser.add_argument("suite", metavar="SUITE", help="its name in the report")
    parser.add_argument(
        "--summary", type=Path, default=ALL_SUMMARY, metavar="FILE", help=f"default: {ALL_SUMMARY}"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a tabular below a comment with its title and unit.

    A cell without a number has its status in its place; a scattered cell has no speedup.

    Raises:
        ReperfError: there is no such table, or no such suite in it.
    """
    import pandas as pd  # noqa: PLC0415 - 0.5 s

    from reperf.drawing.labels import title_of, unit_of  # noqa: PLC0415
    from reperf.drawing.panels import entries_of  # noqa: PLC0415
    from reperf.tables import read_summary  # noqa: PLC0415

    summary = read_summary(options.summary)
    cells = summary[summary["suite"] == options.suite]
    if cells.empty:
        suites = list(dict.fromkeys(summary["suite"]))
        raise ReperfError(
            f"{options.summary}: no suite {options.suite!r}; allowed: {', '.join(suites) or 'none'}"
            f"{did_you_mean(options.suite, suites)}"
        )
    table = pd.DataFrame(map(_row, entries_of(cells)), columns=HEADINGS)
    alignment = f"ll{'r' * (len(HEADINGS) - 3)}l"
    print(f"% {printable(title_of(cells))}; {printable(unit_of(cells))}")
    print(table.to_latex(index=False, escape=True, column_format=alignment), end="")
    return 0


def _row(entry: "Entry") -> tuple[str, ...]:
    from reperf.printed import ABSENT, percent, plain_number, sharing  # noqa: PLC0415

    cell = entry.row
    topology = ", ".join(filter(None, (cell.topology, sharing(cell))))
    place, runs = (printable(entry.series), topology), str(cell.n)
    if not entry.measured:
        return *place, cell.status, "", "", "", "", runs, ""
    numbers = [plain_number(getattr(cell, name)) for name in NUMBERS] + [percent(cell.efficiency)]
    if entry.scattered:
        numbers[-2:] = [ABSENT, ABSENT]
    return *place, *numbers, runs, ", ".join(entry.marks)
