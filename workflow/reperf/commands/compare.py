"""`reperf compare`: whether cells are slower or faster in one report than in another."""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reperf.errors import ReperfError
from reperf.text import count, in_markdown, printable

if TYPE_CHECKING:
    from reperf.measuring.comparison import ComparedCell, Comparison
    from reperf.measuring.report_sides import Side

SLOWER, BAD_INPUT, NOTHING_COMPARABLE = 1, 2, 3
"""Exit statuses."""
LARGEST_THRESHOLD = 50
"""Percent."""
HEADINGS = ("cell", "before", "after", "unit", "change", "95 % interval", "n", "verdict")
LEFT = ("cell", "unit", "verdict")
SHOWN = 6
"""Values and names that a line lists."""
_NO_LIMIT = 1 << 16
_STYLES = {"slower": "bold red", "no longer measured": "bold red", "faster": "green"}
_PACKAGE = "package "


@dataclass(frozen=True)
class _Answer:
    """All that is printed."""

    base: "Side"
    new: "Side"
    threshold: float
    comparison: "Comparison"
    names: dict[tuple[str, ...], str]
    differences: dict[str, tuple[list[str], list[str]]]


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
    parser.add_argument(
        "--threshold",
        type=_threshold,
        default=0.01,
        metavar="PERCENT",
        help="the smallest change that matters to you, such as 0.5%%; default: 1%%",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON object")
    output.add_argument(
        "--markdown", action="store_true", help="a Markdown table, such as for a pull request"
    )
    parser.set_defaults(run=run)


def _threshold(text: str) -> float:
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,6})?) ?%", text)
    if not match or float(match[1]) > LARGEST_THRESHOLD:
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: a percentage from 0% to {LARGEST_THRESHOLD}%, such as 1%"
        )
    return float(match[1]) / 100


def run(options: argparse.Namespace) -> int:
    """Print how the cells of two reports differ; bad input is one line and a status of its own."""
    from reperf.measuring.comparison import compare_tables, names_of, rows_of  # noqa: PLC0415
    from reperf.measuring.report_sides import differences, read_side  # noqa: PLC0415

    try:
        base, new = read_side(options.base), read_side(options.new)
    except ReperfError as error:  # the usual status would mean "slower"
        print(f"reperf: {error}", file=sys.stderr)
        return BAD_INPUT
    comparison = compare_tables(base.table, new.table, options.threshold)
    cells = [cell.cell for cell in comparison.cells]
    rows = rows_of(base.table, cells), rows_of(new.table, cells)
    found = differences(base, new, rows)
    every = [*cells, *comparison.only_base, *comparison.only_new]
    names = dict(zip(every, names_of(every), strict=True))
    answer = _Answer(base, new, options.threshold, comparison, names, found)
    if options.json:
        print(json.dumps(_object(answer), indent=2, ensure_ascii=False))
    elif options.markdown:
        print("\n".join(_markdown(answer)))
    else:
        _show(answer)
    return status_of(comparison)


def status_of(comparison: "Comparison") -> int:
    """The exit status: a cell that has lost its number counts as slower."""
    judgements = {cell.verdict.judgement for cell in comparison.cells}
    if judgements & {"slower", "no longer measured"}:
        return SLOWER
    return 0 if any(cell.comparable for cell in comparison.cells) else NOTHING_COMPARABLE


def _show(answer: _Answer) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(width=None if sys.stdout.isatty() else _NO_LIMIT, highlight=False)
    for line in _first_lines(answer):
        console.print(Text(printable(line)))
    if answer.comparison.cells:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in LEFT else "right")
        for cell in answer.comparison.cells:
            values = map(Text, map(printable, _row(answer.names[cell.cell], cell)))
            table.add_row(*values, style=_STYLES.get(cell.verdict.judgement, ""))
        with console.capture() as captured:
            console.print(table)
        print("", *(line.rstrip() for line in captured.get().splitlines()), "", sep="\n")
    for line in _last_lines(answer):
        console.print(Text(printable(line)))


def _markdown(answer: _Answer) -> Iterator[str]:
    yield f"**{in_markdown(_summary(answer))}**"
    yield ""
    if answer.comparison.cells:
        yield "| " + " | ".join(HEADINGS) + " |"
        yield "|" + "|".join("---" if heading in LEFT else "---:" for heading in HEADINGS) + "|"
        for cell in answer.comparison.cells:
            row = _row(answer.names[cell.cell], cell)
            yield "| " + " | ".join(map(in_markdown, row)) + " |"
        yield ""
    for line in [*_first_lines(answer), *_last_lines(answer)[:-1]]:
        yield f"- {in_markdown(line.strip())}"


def _first_lines(answer: _Answer) -> list[str]:
    """What was compared, and in what both differ."""
    comparison = answer.comparison
    only = [
        f"{count(len(cells), 'cell')} only in the {which}"
        for cells, which in ((comparison.only_base, "first"), (comparison.only_new, "second"))
        if cells
    ]
    both = f"{count(len(comparison.cells), 'cell')} in both"
    lines = [f"{answer.base.path} -> {answer.new.path}: {', '.join([both, *only])}"]
    lines += [
        f"{count(side.refused, 'log')} of {side.path} not measured: reperf measure says why"
        for side in (answer.base, answer.new)
        if side.refused
    ]
    values = answer.differences.items()
    lines += [
        f"differs: {name}: {_listed(before)} -> {_listed(after)}"
        for name, (before, after) in values
        if not name.startswith(_PACKAGE)
    ]
    packages = [
        f"{name.removeprefix(_PACKAGE)} {_listed(before)} -> {_listed(after)}"
        for name, (before, after) in values
        if name.startswith(_PACKAGE)
    ]
    return lines + ([f"differs: packages: {_listed(packages, '; ')}"] if packages else [])


def _last_lines(answer: _Answer) -> list[str]:
    """Where changes show, which cells are alone, and the sum, last."""
    from reperf.measuring.comparison import columns_apart  # noqa: PLC0415

    comparison, lines = answer.comparison, []
    for cell in comparison.cells:
        if cell.verdict.judgement in ("slower", "faster") and (shown := _where(cell)):
            lines.append(f"where it shows in {answer.names[cell.cell]}: {shown}")
    only = (comparison.only_base, "first"), (comparison.only_new, "second")
    for cells, which in only:
        if cells:
            lines.append(
                f"only in the {which}: {_listed((answer.names[cell] for cell in cells), '; ')}"
            )
    if not comparison.cells and comparison.only_base and comparison.only_new:
        for column, before, after in columns_apart(comparison.only_base, comparison.only_new):
            values = [
                _listed(sorted(value or "none" for value in side)) for side in (before, after)
            ]
            lines.append(f"no value of {column} is in both: {values[0]} -> {values[1]}")
    return [*lines, _summary(answer)]


def _summary(answer: _Answer) -> str:
    judgements = Counter(cell.verdict.judgement for cell in answer.comparison.cells)
    parts = [f"{number} {judgement}" for judgement, number in judgements.most_common()]
    return f"{', '.join(parts) or 'no cell is in both'} (threshold {_percent(answer.threshold)})"


def _row(name: str, cell: "ComparedCell") -> tuple[str, ...]:
    from reperf.printed import in_four_digits  # noqa: PLC0415

    change, interval, found = "", "", cell.verdict.ratio
    if found:
        change = _signed(found.estimate)
        if found.low is not None and found.high is not None:
            interval = f"{_signed(found.low)} .. {_signed(found.high)}"
    return (
        name,
        *(in_four_digits(median) for median in cell.medians),
        cell.unit,
        change,
        interval,
        f"{cell.n[0]}:{cell.n[1]}",
        _said(cell),
    )


def _said(cell: "ComparedCell") -> str:
    from reperf.measuring.comparison import MOST_REPEATS  # noqa: PLC0415

    verdict = cell.verdict
    if verdict.judgement != "cannot tell":
        return f"{verdict.judgement}: {cell.reason}" if cell.reason else verdict.judgement
    needed = f"more than {MOST_REPEATS}" if verdict.repeats is None else f"about {verdict.repeats}"
    return f"cannot tell: {needed} repeats would"


def _where(cell: "ComparedCell") -> str:
    """Other numbers of a cell before and after, where both are known."""
    from reperf.printed import gibibytes, in_four_digits, percent  # noqa: PLC0415

    def step(value: float) -> str:
        return f"{in_four_digits(value)} ms"

    shown = ("step", cell.step_ms, step), ("waited for data", cell.waited, percent)
    return "; ".join(
        f"{name} {print_number(before)} -> {print_number(after)}"
        for name, (before, after), print_number in (
            *shown,
            ("peak memory", cell.peak_memory, gibibytes),
        )
        if before is not None and after is not None
    )


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _listed(values: Iterable[str], separator: str = ", ") -> str:
    words = list(values)
    more = len(words) - SHOWN
    return separator.join(words[:SHOWN] or ["unknown"]) + (f" and {more} more" if more > 0 else "")


def _object(answer: _Answer) -> dict[str, Any]:
    """The comparison as JSON."""
    from reperf.measuring.comparison import MATCHED  # noqa: PLC0415

    def identity(cell: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(MATCHED, cell, strict=True))

    comparison = answer.comparison
    return {
        "base": str(answer.base.path),
        "new": str(answer.new.path),
        "threshold": answer.threshold,
        "exit_status": status_of(comparison),
        "differences": [
            {"name": name, "base": before, "new": after}
            for name, (before, after) in answer.differences.items()
        ],
        "cells": [
            {
                "name": answer.names[cell.cell],
                "cell": identity(cell.cell),
                "verdict": cell.verdict.judgement,
                "reason": cell.reason,
                "unit": cell.unit,
                "n": cell.n,
                "median": cell.medians,
                "ratio": cell.verdict.ratio and cell.verdict.ratio._asdict(),
                "p_changed": cell.verdict.changed,
                "p_beyond_threshold": cell.verdict.beyond,
                "repeats_to_tell": cell.verdict.repeats,
                "step_ms": cell.step_ms,
                "waited": cell.waited,
                "peak_memory": cell.peak_memory,
            }
            for cell in comparison.cells
        ],
        "only_base": [identity(cell) for cell in comparison.only_base],
        "only_new": [identity(cell) for cell in comparison.only_new],
    }
