"""`reperf latex`: a suite's table for a paper."""

import argparse
from pathlib import Path
from typing import Any

from reperf.errors import ReperfError
from reperf.layout import ALL_SUMMARY
from reperf.nearest import did_you_mean


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
    """Print the table.

    Raises:
        ReperfError: there is no such table, or no such suite in it.
    """
    from reperf.latex import latex_of  # noqa: PLC0415 - pandas: 0.5 s
    from reperf.tables import read_summary  # noqa: PLC0415

    summary = read_summary(options.summary)
    cells = summary[summary["suite"] == options.suite]
    if cells.empty:
        suites = list(dict.fromkeys(summary["suite"]))
        raise ReperfError(
            f"{options.summary}: no suite {options.suite!r}; allowed: {', '.join(suites) or 'none'}"
            f"{did_you_mean(options.suite, suites)}"
        )
    print(latex_of(cells), end="")
    return 0
