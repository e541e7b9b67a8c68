"""`reperf history`: how cells of archived reports changed over time, and where they stepped."""

import argparse
import json
from pathlib import Path
from typing import Any

from reperf.commands.compare import (
    BAD_INPUT,
    ask_for_page,
    ask_for_threshold,
    print_lines,
    print_table,
)
from reperf.files import write_whole
from reperf.measuring.comparison import MATCHED
from reperf.measuring.comparison_output import lines_of, signed
from reperf.measuring.history import FEWEST, History, Line, history_of
from reperf.number_format import in_four_digits

HEADINGS = ("cell", "points", "first", "last", "unit", "newest", "steps")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Read all archives and reports in a folder and below it, in the order in which they were "
        "measured. Exit status: 0, or 2 for wrong arguments or input."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="of archives or reports")
    ask_for_threshold(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    ask_for_page(parser)
    parser.set_defaults(run=run, status_of_faults=BAD_INPUT)


def run(options: argparse.Namespace) -> int:
    """Print a line for each cell."""
    history = history_of(options.folder, options.threshold)
    if options.html:
        from reperf.report.html import render_history  # noqa: PLC0415 - libraries

        write_whole(options.html, render_history(str(options.folder), history))
    if options.json:
        print(json.dumps(_object(history), indent=2, ensure_ascii=False))
        return 0
    rows = [
        (
            line.name,
            str(len(line.points)),
            *(in_four_digits(point.throughput) for point in (line.points[0], line.points[-1])),
            line.unit,
            line.points[-1].date[:10],
            _steps(line) or ("" if len(line.points) >= FEWEST else f"fewer than {FEWEST} points"),
        )
        for line in history.lines
    ]
    left = ("cell", "unit", "newest", "steps")
    print_table(HEADINGS, left, rows)
    print_lines(_notes(history))
    return 0


def _steps(line: Line) -> str:
    return "; ".join(
        f"{signed(step.ratio)} {line.points[step.at].date[:10]}" for step in line.steps
    )


def _notes(history: History) -> list[str]:
    """What differs at each step of a cell, and what was left out."""
    notes = []
    for line in history.lines:
        for step in line.steps:
            before, after = (line.points[at].side.path for at in (step.at - 1, step.at))
            notes.append(f"{line.name}: {signed(step.ratio)} from {before} to {after}")
            notes += [f"  {difference}" for difference in lines_of(step.differences)]
        notes += [f"{line.name}: not comparable: {why}" for why in line.not_comparable]
    return notes + [f"left out: {why}" for why in history.left_out]


def _object(history: History) -> dict[str, Any]:
    return {
        "cells": [
            {
                "name": line.name,
                "cell": dict(zip(MATCHED, line.cell, strict=True)),
                "unit": line.unit,
                "points": [
                    {
                        "report": str(point.side.path),
                        "date": point.date,
                        "throughput": point.throughput,
                        "n": len(point.runs),
                        "commits": point.commits,
                        "builds": point.builds,
                        "level": level,
                    }
                    for point, level in zip(line.points, line.levels, strict=True)
                ],
                "steps": [
                    {"at": step.at, "ratio": step.ratio, "differences": step.differences}
                    for step in line.steps
                ],
                "not_comparable": line.not_comparable,
            }
            for line in history.lines
        ],
        "left_out": history.left_out,
    }
