"""`reperf export`: a suite's table for a paper, a page or another program."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reperf.drawing.labels import title_of, unit_of
from reperf.drawing.panels import Entry, entries_of
from reperf.errors import ReperfError
from reperf.layout import ALL_SUMMARY
from reperf.number_format import in_four_digits, percent, plain_number, sharing
from reperf.suggestions import allowed
from reperf.tables import read_summary
from reperf.text import in_markdown, printable

FORMATS = ("markdown", "latex", "csv")
NUMBERS = {
    "Median": "throughput_median",
    "Min": "throughput_min",
    "Max": "throughput_max",
    "Speedup": "speedup",
    "Efficiency": "efficiency",
}  # heading -> column of summary.csv
HEADINGS = ("System", "Topology", *NUMBERS, "Runs", "Remarks")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Print the table of a suite, with the remarks that the report's page has: "
        r"`reperf export --format latex resnet50-fp32 > resnet50.tex`, and \input{resnet50.tex} in "
        "the paper, which needs the package booktabs. CSV has all digits, and a column for the "
        "unit."
    )
    parser.add_argument("suite", metavar="SUITE", help="its name in the report")
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help=f"default: {FORMATS[0]}"
    )
    parser.add_argument(
        "--summary", type=Path, default=ALL_SUMMARY, metavar="FILE", help=f"default: {ALL_SUMMARY}"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table, in LaTeX and Markdown below its title and unit.

    A cell without a number has its status in its place; a scattered cell has no speedup.
    """
    summary = read_summary(options.summary)
    cells = summary[summary["suite"] == options.suite]
    if cells.empty:
        known = allowed(options.suite, dict.fromkeys(summary["suite"]))
        raise ReperfError(f"{options.summary}: no suite {options.suite!r}; {known}")
    exact = options.format == "csv"
    entries = entries_of(cells)
    rows = [_row(one, exact=exact) for one in entries]
    table = pd.DataFrame(rows, columns=HEADINGS, dtype=object)
    if not exact and not any(one.scales for one in entries):
        table = table.drop(columns=["Speedup", "Efficiency"])  # 1 by definition
    unit = printable(unit_of(cells))
    title, right = f"{printable(title_of(cells))}; {unit}", {*NUMBERS, "Runs"}
    match options.format:
        case "csv":
            table.columns = [heading.lower() for heading in HEADINGS]
            table["unit"] = unit
            print(table.to_csv(index=False, lineterminator="\n"), end="")
        case "latex":
            alignment = "".join("r" if heading in right else "l" for heading in table)
            table = table.rename(columns={"Median": f"Median, {unit}"})
            print(f"% {title}")
            latex = table.to_latex(index=False, escape=True, column_format=alignment)
            # LaTeX would read a bracket or star there as the argument of \\ before it.
            print(re.sub(r"(?m)^(?=[\[*])", "{}", latex), end="")
        case "markdown":
            rule = ["---:" if heading in right else "---" for heading in table]
            shown = [table, rule, *(map(in_markdown, row) for row in table.to_numpy())]
            print(
                f"**{in_markdown(title)}**\n",
                *(f"| {' | '.join(row)} |" for row in shown),
                sep="\n",
            )
    return 0


def _row(entry: Entry, *, exact: bool) -> Sequence[str]:
    cell = entry.row
    topology = ", ".join(filter(None, (cell.topology, sharing(cell))))
    place, runs = (printable(entry.series), topology), str(cell.n)
    if not entry.measured:
        return *place, cell.status, "", "", "", "", runs, printable(cell.reason)
    values = [getattr(cell, name) for name in NUMBERS.values()]
    if cell.n == 1:
        values[1:3] = float("nan"), float("nan")
    if entry.scattered:
        values[3:] = float("nan"), float("nan")
    if exact:
        numbers = ["" if pd.isna(value) else repr(float(value)) for value in values]
    else:
        numbers = [*map(in_four_digits, values[:3]), plain_number(values[3]), percent(values[4])]
    partial = [] if cell.status == "ok" else [f"{cell.status}: {printable(cell.reason)}"]
    return *place, *numbers, runs, ", ".join(partial + entry.marks)
