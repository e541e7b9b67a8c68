"""`reperf runs`: name runs, so that Snakemake can be told to run just those again."""

import argparse
import sys
from pathlib import Path

from reperf.commands import ask_for_files, count
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.layout import tables_of
from reperf.number_format import number
from reperf.reruns import failed_runs, failed_searches, planned_runs
from reperf.suggestions import did_you_mean
from reperf.tables import read_measurements
from reperf.terminal import table_lines, width_here
from reperf.text import listed, printable

WITHOUT = "none"  # the variant of runs that have none
SHOWN = 12  # values that a refusal lists


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Show the runs that fit every option given: a table in a terminal, else a record file a "
        "line, for `snakemake --forcerun $(reperf runs --failed)`."
    )
    ask_for_files(
        parser, "the report; left out: the one that snakemake was last called for in this folder"
    )
    for option, text in (
        ("--suite", "by its name in the report"),
        ("--system", "all of its variants"),
        ("--variant", f"such as compile; {WITHOUT}: runs without any"),
        ("--topology", "such as 1n8g"),
    ):
        parser.add_argument(option, metavar="NAME", help=text)
    parser.add_argument("--repeat", type=count, metavar="N", help="counted from 1")
    parser.add_argument(
        "--failed", action="store_true", help="runs that another try could still measure"
    )
    parser.add_argument(
        "--paths", action="store_true", help="print a path a line in a terminal, too"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show a table in a terminal, else print a path a line.

    Refused if no run fits: Snakemake treats an empty list as no argument at all.
    """
    chosen = planned_runs(options.configfile)
    if not chosen:
        raise ReperfError("the report has no runs")
    for name in ("suite", "system", "variant", "topology", "repeat"):
        wanted = getattr(options, name)
        if wanted is not None:
            chosen = _that_fit(chosen, name, wanted)
    if options.failed and not (chosen := failed_runs(chosen)):
        raise ReperfError("none of these runs has failed")
    if sys.stdout.isatty() and not options.paths:
        _show(chosen)
        return 0
    searches = failed_searches(chosen) if options.failed else []
    for path in [*searches, *(run.record for run in chosen)]:
        print(printable(str(path)))
    return 0


def _show(runs: list[Run]) -> None:
    """Show each run with its status, its number and the reason why it has none."""
    tables = [Path(tables_of(suite)[0]) for suite in dict.fromkeys(run.suite for run in runs)]
    measured = (read_measurements(table) for table in tables if table.exists())
    rows = {row.log: row for table in measured for row in table.itertuples()}
    shown = []
    for run in runs:
        name, row = "/".join(run.folder.parts[2:]), rows.get(str(run.log))
        values = [name, "not measured", "", ""]
        if row:
            throughput = f"{number(row.throughput)} {row.unit}" if row.status == "ok" else ""
            values = [name, row.status, throughput, row.reason]
        shown.append(values)
    headings = ("run", "status", "throughput", "reason")
    print(*table_lines(headings, headings, shown, width=width_here()), sep="\n")


def _that_fit(runs: list[Run], name: str, wanted: str | int) -> list[Run]:
    """The runs that have a value under a name."""
    fitting = [run for run in runs if wanted in _values(run, name)]
    if not fitting:
        there = list(dict.fromkeys(value for run in runs for value in _values(run, name)))
        raise ReperfError(
            f"--{name} {wanted}: no run fits; allowed: {listed(there, SHOWN)}"
            f"{did_you_mean(wanted, map(str, there))}"
        )
    return fitting


def _values(run: Run, name: str) -> list[str | int]:
    if name != "variant":
        return [getattr(run, name)]
    variant = run.shown_variant
    return [variant, *variant.split("+")] if variant else [WITHOUT]
