"""`reperf noise`: how much throughputs vary between reports of the same build."""

import argparse
import json
from itertools import pairwise
from pathlib import Path

from reperf.commands.compare import BAD_INPUT, LARGEST_THRESHOLD, print_lines, print_table
from reperf.measuring.comparison import cells_of, rows_of
from reperf.measuring.comparison_output import NOTHING_COMPARABLE, as_percentage, lines_of, signed
from reperf.measuring.noise import LEAST_FREEDOM, noise_of
from reperf.measuring.report_sides import differences, read_side


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Compare two or more reports of one build, such as from several days, and print the "
        "threshold above which `reperf compare` should report a change. Exit status: 0, 2 wrong "
        "arguments or input, 3 nothing comparable."
    )
    parser.add_argument("first", type=Path, metavar="REPORT", help="as for reperf compare")
    parser.add_argument("others", type=Path, nargs="+", metavar="REPORT")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run, status_of_faults=BAD_INPUT)


def run(options: argparse.Namespace) -> int:
    """Print how much cells vary between reports, and the threshold."""
    sides = [read_side(path) for path in (options.first, *options.others)]
    noise = noise_of(sides)
    status = 0 if noise.cells else NOTHING_COMPARABLE
    if options.json:
        cells = [
            {"name": cell.name, "largest": cell.largest, "between": cell.between}
            | {"within": cell.within, "campaigns": len(cell.changes)}
            for cell in noise.cells
        ]
        answer = {"threshold": noise.threshold, "option": noise.option, "cells": cells}
        print(json.dumps(answer | {"not_compared": noise.not_compared}, indent=2))
        return status
    for one, other in pairwise(sides):
        both = cells_of(one.table).keys() & cells_of(other.table).keys()
        runs = rows_of(one.table, both), rows_of(other.table, both)
        print_lines(lines_of(differences(one, other, runs)))
    if noise.cells:
        headings = "cell", "campaigns", "largest change", "CV between", "CV within"
        rows = [
            (
                cell.name,
                str(len(cell.changes)),
                signed(1 + cell.largest).lstrip("+"),
                f"{100 * cell.between:.2f} %",
                "" if cell.within is None else f"{100 * cell.within:.2f} %",
            )
            for cell in noise.cells
        ]
        print_table(headings, headings[:1], rows)
    print_lines(f"{name}: not compared: {why}" for name, why in noise.not_compared.items())
    if not noise.cells:
        last = "no cell can be compared, so the noise is unknown"
    elif noise.threshold is None or noise.option is None:
        largest = as_percentage(round(max(cell.largest for cell in noise.cells), 4))
        last = (
            f"the largest change is {largest}; a threshold needs {LEAST_FREEDOM} differences or "
            f"more, from cells and campaigns; here: {noise.freedom}"
        )
    elif noise.threshold > LARGEST_THRESHOLD / 100:
        last = (
            f"a change has to exceed {noise.option} to stand out from this noise, and reperf "
            f"compare allows thresholds up to {LARGEST_THRESHOLD}%: make the reports on a quieter "
            "machine"
        )
    else:
        last = f"reperf compare --threshold {noise.option}"
    print_lines([last])
    return status
