"""`reperf compare`: whether cells are slower or faster in one report than in another."""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from reperf.errors import ReperfError
from reperf.text import printable

if TYPE_CHECKING:
    from reperf.measuring.compared import Compared

BAD_INPUT = 2
"""The exit status where the usual one would mean "slower"."""
LARGEST_THRESHOLD = 50
"""Percent."""
_NO_LIMIT = 1 << 16
_STYLES = {"slower": "bold red", "no longer measured": "bold red", "faster": "green"}
_FAILED = ("slower", "no longer measured")
_SKIPPED = ("cannot tell", "not comparable", "never measured")


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser(
        "compare",
        help="compare two reports, or two folders of logs, cell by cell",
        description="Compare the cells of two reports: a report's folder, its archive, its "
        "measurements.csv, or logs. Exit status: 0 nothing slower, 1 a cell is slower or no longer "
        "measured, 2 wrong arguments or input, 3 nothing comparable.",
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
    parser.set_defaults(run=run)


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
    from reperf.measuring.compared import (  # noqa: PLC0415
        as_markdown,
        as_object,
        compare_paths,
    )

    try:
        compared = compare_paths(options.base, options.new, options.threshold)
        if options.junit:
            write_text(options.junit, _junit(compared))
        if options.html:
            from reperf.report.html import render_comparison  # noqa: PLC0415 - libraries

            write_text(options.html, render_comparison(compared))
    except ReperfError as error:
        return bad_input(error)
    if options.json:
        print(json.dumps(as_object(compared), indent=2, ensure_ascii=False))
    elif options.markdown:
        print("\n".join(as_markdown(compared)))
    else:
        show(compared)
    return compared.status


def bad_input(error: ReperfError) -> int:
    """Say what is wrong, and return the exit status."""
    print(f"reperf: {error}", file=sys.stderr)
    return BAD_INPUT


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    from reperf.files import whole_file  # noqa: PLC0415

    with whole_file(path) as stream:
        stream.write(text)


def show(compared: "Compared") -> None:
    """Print a comparison for people."""
    from reperf.measuring.compared import (  # noqa: PLC0415
        HEADINGS,
        LEFT,
        first_lines,
        last_lines,
    )

    rows = [(row, _STYLES.get(cell.verdict.judgement, "")) for cell, row in compared.rows]
    print_lines(first_lines(compared))
    if rows:
        print_table(HEADINGS, LEFT, rows)
    print_lines(last_lines(compared))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines unchanged, except for what a terminal would obey."""
    for line in lines:
        print(printable(line))


def print_table(
    headings: Sequence[str], left: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]
) -> None:
    """Print a table between two empty lines: rows, each with its style."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(width=None if sys.stdout.isatty() else _NO_LIMIT, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for values, style in rows:
        table.add_row(*map(Text, map(printable, values)), style=style)
    with console.capture() as captured:
        console.print(table)
    print("", *(line.rstrip() for line in captured.get().splitlines()), "", sep="\n")


def _junit(compared: "Compared") -> str:
    """The comparison as JUnit's XML, which CI systems show."""
    from reperf.measuring.compared import summary  # noqa: PLC0415

    suite = ElementTree.Element("testsuite", name="reperf compare")
    counts = dict.fromkeys(("failure", "skipped"), 0)
    for cell, row in compared.rows:
        case = ElementTree.SubElement(
            suite, "testcase", classname=printable(cell.cell[0]), name=printable(row[0])
        )
        *numbers, verdict = row[1:]
        text = printable("  ".join(filter(None, [verdict, *numbers])))
        for kind, judgements in (("failure", _FAILED), ("skipped", _SKIPPED)):
            if cell.verdict.judgement in judgements:
                ElementTree.SubElement(case, kind, message=text)
                counts[kind] += 1
        ElementTree.SubElement(case, "system-out").text = text
    suite.attrib |= {"tests": str(len(compared.rows)), "failures": str(counts["failure"])}
    suite.attrib |= {"skipped": str(counts["skipped"])}
    ElementTree.SubElement(suite, "system-out").text = printable(summary(compared))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"
