"""What people and programs read of a comparison: lines, a table's rows, one object."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reperf.layout import ALL_MEASUREMENTS
from reperf.measuring.comparison import (
    MATCHED,
    MOST_REPEATS,
    Cell,
    ComparedCell,
    Comparison,
    Pair,
    cells_of,
    columns_apart,
    compare_tables,
    names_of,
    rows_of,
)
from reperf.measuring.report_sides import (
    Differences,
    Side,
    differences,
    read_side,
    seconds_to_first_step,
)
from reperf.number_format import gibibytes, in_four_digits, percent
from reperf.text import count, in_markdown, listed

THRESHOLD = 0.01  # the smallest change that matters, as a share, where nobody says another
SLOWER, NOTHING_COMPARABLE = 1, 3  # exit statuses
HEADINGS = ("cell", "before", "after", "unit", "change", "95 % interval", "n", "verdict")
LEFT = ("cell", "unit", "verdict")
_PACKAGE = "package "


@dataclass(frozen=True)
class Compared:
    """Two reports, and how their cells compare."""

    base: Side
    new: Side
    threshold: float
    comparison: Comparison
    names: dict[Cell, str]
    differences: Differences
    first_steps: dict[Cell, Pair]
    """The seconds to the first step before and after, of the cells in both."""

    @property
    def status(self) -> int:
        """The exit status: a cell that has lost its number counts as slower."""
        judgements = {cell.verdict.judgement for cell in self.comparison.cells}
        if judgements & {"slower", "no longer measured"}:
            return SLOWER
        comparable = any(cell.comparable for cell in self.comparison.cells)
        return 0 if comparable else NOTHING_COMPARABLE

    @property
    def rows(self) -> list[tuple[ComparedCell, tuple[str, ...]]]:
        """Each cell of both reports, and what the table says of it under HEADINGS."""
        return [(cell, _row(self.names[cell.cell], cell)) for cell in self.comparison.cells]


def compare_paths(base: Path, new: Path, threshold: float) -> Compared:
    """Compare two reports or folders of logs.

    Args:
        base, new: as read_side takes them.
        threshold: the smallest change that matters, as a share.

    Raises:
        ReperfError: one of the two cannot be read.
    """
    before, after = read_side(base), read_side(new)
    comparison = compare_tables(before.table, after.table, threshold)
    cells = [cell.cell for cell in comparison.cells]
    every = [*cells, *comparison.only_base, *comparison.only_new]
    first_steps = []
    for side in (before, after):
        runs = cells_of(side.table)
        first_steps.append([seconds_to_first_step(side, runs[cell]) for cell in cells])
    return Compared(
        before,
        after,
        threshold,
        comparison,
        dict(zip(every, names_of(every), strict=True)),
        differences(before, after, (rows_of(before.table, cells), rows_of(after.table, cells))),
        dict(zip(cells, zip(*first_steps, strict=True), strict=True)),
    )


def compare_with(base: Path) -> Compared:
    """Compare the report in the working folder with an earlier one, by the usual threshold.

    Raises:
        ReperfError: the earlier one cannot be read.
    """
    return compare_paths(base, Path(ALL_MEASUREMENTS).parent, THRESHOLD)


def as_markdown(compared: Compared) -> Iterator[str]:
    """The lines of a comment on a pull request: the sum, the table, what differs."""
    yield f"**{in_markdown(summary(compared))}**"
    yield ""
    if compared.comparison.cells:
        yield "| " + " | ".join(HEADINGS) + " |"
        yield "|" + "|".join("---" if heading in LEFT else "---:" for heading in HEADINGS) + "|"
        for _, row in compared.rows:
            yield "| " + " | ".join(map(in_markdown, row)) + " |"
        yield ""
    for line in [*first_lines(compared), *last_lines(compared)[:-1]]:
        yield f"- {in_markdown(line.strip())}"


def first_lines(compared: Compared) -> list[str]:
    """What was compared, and in what both differ."""
    comparison = compared.comparison
    only = [
        f"{count(len(cells), 'cell')} only in the {which}"
        for cells, which in ((comparison.only_base, "first"), (comparison.only_new, "second"))
        if cells
    ]
    both = f"{count(len(comparison.cells), 'cell')} in both"
    lines = [f"{compared.base.path} -> {compared.new.path}: {', '.join([both, *only])}"]
    lines += [
        f"{count(side.refused, 'log')} of {side.path} not measured: reperf measure says why"
        for side in (compared.base, compared.new)
        if side.refused
    ]
    return lines + lines_of(compared.differences)


def lines_of(differing: Differences) -> list[str]:
    """What differs, a line each; packages share one, and so does what one side does not say."""
    lines, packages, unknown = [], [], []
    for name, (before, after) in differing.items():
        if not before or not after:
            unknown.append("packages" if name.startswith(_PACKAGE) else name)
        elif name.startswith(_PACKAGE):
            packages.append(f"{name.removeprefix(_PACKAGE)} {listed(before)} -> {listed(after)}")
        else:
            lines.append(f"differs: {name}: {listed(before)} -> {listed(after)}")
    if packages:
        lines.append(f"differs: packages: {listed(packages, separator='; ')}")
    if unknown:
        lines.append(f"known on one side only: {listed(dict.fromkeys(unknown))}")
    return lines


def last_lines(compared: Compared) -> list[str]:
    """Where changes show, which cells are alone, and the sum, last."""
    comparison, lines = compared.comparison, []
    for cell in comparison.cells:
        if cell.verdict.judgement in ("slower", "faster") and (shown := _where(compared, cell)):
            lines.append(f"where it shows in {compared.names[cell.cell]}: {shown}")
    only = (comparison.only_base, "first"), (comparison.only_new, "second")
    for cells, which in only:
        if cells:
            names = [compared.names[cell] for cell in cells]
            lines.append(f"only in the {which}: {listed(names, separator='; ')}")
    if not comparison.cells and comparison.only_base and comparison.only_new:
        for column, before, after in columns_apart(comparison.only_base, comparison.only_new):
            values = [listed(sorted(value or "none" for value in side)) for side in (before, after)]
            lines.append(f"no value of {column} is in both: {values[0]} -> {values[1]}")
    return [*lines, summary(compared)]


def summary(compared: Compared) -> str:
    """How many cells have which verdict, such as "1 slower, 3 same (threshold 1 %)"."""
    judgements = Counter(cell.verdict.judgement for cell in compared.comparison.cells)
    parts = [f"{number} {judgement}" for judgement, number in judgements.most_common()]
    threshold = as_percentage(compared.threshold)
    return f"{', '.join(parts) or 'no cell is in both'} (threshold {threshold})"


def _row(name: str, cell: ComparedCell) -> tuple[str, ...]:
    change, interval, found = "", "", cell.verdict.ratio
    if found:
        change = signed(found.estimate)
        if found.low is not None and found.high is not None:
            interval = f"{signed(found.low)} .. {signed(found.high)}"
    return (
        name,
        *(in_four_digits(median) for median in cell.medians),
        cell.unit,
        change,
        interval,
        f"{cell.n[0]}:{cell.n[1]}",
        _verdict_of(cell),
    )


def _verdict_of(cell: ComparedCell) -> str:
    verdict = cell.verdict
    if verdict.judgement != "cannot tell":
        return f"{verdict.judgement}: {cell.reason}" if cell.reason else verdict.judgement
    needed = f"more than {MOST_REPEATS}" if verdict.repeats is None else f"about {verdict.repeats}"
    return f"cannot tell: {needed} repeats would"


def _where(compared: Compared, cell: ComparedCell) -> str:
    """Other numbers of a cell before and after, where both are known."""
    numbers = cell.numbers | {"first_step": compared.first_steps[cell.cell]}
    shown: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("step", "step_ms", lambda value: f"{in_four_digits(value)} ms"),
        ("waited for data", "waited", percent),
        ("peak memory", "peak_memory", gibibytes),
        ("first step after", "first_step", "{:.1f} s".format),
        ("clock", "mhz", "{:.0f} MHz".format),
        ("other work", "load", percent),
    )
    return "; ".join(
        f"{name_shown} {print_number(before)} -> {print_number(after)}"
        for name_shown, name, print_number in shown
        for before, after in [numbers[name]]
        if before is not None and after is not None
    )


def signed(ratio: float) -> str:
    """A change, such as "-4.55 %"."""
    return f"{100 * (ratio - 1):+.2f} %"


def as_percentage(share: float) -> str:
    """A share as somebody would type it: "0.5 %"."""
    return f"{100 * share:g} %"


def as_object(compared: Compared) -> dict[str, Any]:
    """The comparison as JSON."""

    def identity(cell: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(MATCHED, cell, strict=True))

    comparison = compared.comparison
    return {
        "base": str(compared.base.path),
        "new": str(compared.new.path),
        "threshold": compared.threshold,
        "exit_status": compared.status,
        "differences": [
            {"name": name, "base": before, "new": after}
            for name, (before, after) in compared.differences.items()
        ],
        "cells": [
            {
                "name": compared.names[cell.cell],
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
                **cell.numbers,
                "first_step_seconds": compared.first_steps[cell.cell],
            }
            for cell in comparison.cells
        ],
        "only_base": [identity(cell) for cell in comparison.only_base],
        "only_new": [identity(cell) for cell in comparison.only_new],
    }
