"""`reperf compare`: whether cells are slower or faster in one report than in another."""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from reperf.files import write_whole
from reperf.junit import Case, Outcome, junit
from reperf.measuring.comparison_output import (
    HEADINGS,
    LEFT,
    Compared,
    as_markdown,
    as_object,
    compare_paths,
    first_lines,
    last_lines,
    summary,
)
from reperf.terminal import table_lines, width_here
from reperf.text import printable

BAD_INPUT = 2  # the exit status where the usual one would mean "slower"
LARGEST_THRESHOLD = 50  # percent
_STYLES = {"slower": "bold red", "no longer measured": "bold red", "faster": "green"}
_OUTCOMES: dict[str, Outcome] = {
    **dict.fromkeys(("slower", "no longer measured"), "failure"),
    **dict.fromkeys(("cannot tell", "not comparable", "never measured"), "skipped"),
}  # judgement -> the outcome of its test case


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Compare the cells of two reports: a report's folder, its archive, its measurements.csv, "
        "or logs. Exit status: 0 nothing slower, 1 a cell is slower or no longer measured, 2 wrong "
        "arguments or input, 3 nothing comparable."
    )
    parser.add_argument("base", type=Path, metavar="BASE", help="the report before the change")
    parser.add_argument("new", type=Path, metavar="NEW", help="the report after it")
    ask_for_threshold(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON object")
    output.add_argument(
        "--markdown", action="store_true", help="a Markdown table, such as for a pull request"
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="also write JUnit XML: a test case for each cell"
    )
    ask_for_page(parser)
    parser.set_defaults(run=run, status_of_faults=BAD_INPUT)


def ask_for_threshold(parser: argparse.ArgumentParser) -> None:
    """Add --threshold, a share after it is read."""
    parser.add_argument(
        "--threshold",
        type=_threshold,
        default=0.01,
        metavar="PERCENT",
        help="the smallest change that matters to you, such as 0.5%%; default: 1%%",
    )


def ask_for_page(parser: argparse.ArgumentParser) -> None:
    """Add --html, which names the file of a page."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page, in one file")


def _threshold(text: str) -> float:
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,6})?) ?%", text)
    if not match or float(match[1]) > LARGEST_THRESHOLD:
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: a percentage from 0% to {LARGEST_THRESHOLD}%, such as 1%"
        )
    return float(match[1]) / 100


def run(options: argparse.Namespace) -> int:
    """Print how the cells of two reports differ; bad input is one line and a status of its own."""
    compared = compare_paths(options.base, options.new, options.threshold)
    if options.junit:
        write_whole(options.junit, _junit(compared))
    if options.html:
        from reperf.report.html import render_comparison  # noqa: PLC0415 - libraries

        write_whole(options.html, render_comparison(compared))
    if options.json:
        print(json.dumps(as_object(compared), indent=2, ensure_ascii=False))
    elif options.markdown:
        print("\n".join(as_markdown(compared)))
    else:
        show(compared)
    return compared.status


def show(compared: Compared) -> None:
    """Print a comparison for people."""
    print_lines(first_lines(compared))
    if compared.rows:
        styles = [_STYLES.get(cell.verdict.judgement, "") for cell, _ in compared.rows]
        print_table(HEADINGS, LEFT, [row for _, row in compared.rows], styles)
    print_lines(last_lines(compared))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines unchanged, except for what a terminal would obey."""
    for line in lines:
        print(printable(line))


def print_table(
    headings: Sequence[str],
    left: Sequence[str],
    rows: Iterable[Sequence[str]],
    styles: Sequence[str] = (),
) -> None:
    """Print a table between two empty lines."""
    lines = table_lines(headings, left, rows, styles=styles, width=width_here())
    print("", *lines, "", sep="\n")


def _junit(compared: Compared) -> str:
    """The comparison as JUnit's XML, with a test case a cell."""
    cases = []
    for cell, (name, *numbers, verdict) in compared.rows:
        outcome = _OUTCOMES.get(cell.verdict.judgement, "")
        text = "  ".join(filter(None, [verdict, *numbers]))
        cases.append(Case(cell.cell[0], name, outcome, text))
    return junit("reperf compare", cases, summary(compared))
