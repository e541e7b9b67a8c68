"""`reperf measure`: the throughput in anyone's logs, or why there is none."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

from reperf.commands import count
from reperf.config import topology_shape
from reperf.errors import ReperfError
from reperf.logs.facts import COMMAND_LINE
from reperf.logs.formats import formats
from reperf.logs.user_pattern import format_of
from reperf.measuring.counts import all_counts
from reperf.measuring.found_logs import MeasureRequest, RunResult, measure_paths
from reperf.measuring.measure import Measurement, Method
from reperf.measuring.results_table import csv_lines, table
from reperf.suggestions import allowed, did_you_mean
from reperf.terminal import width_here
from reperf.values import TOPOLOGY

WIDEST = "all"  # the window that is as wide as the log allows
OFTEN = 0.2  # seconds after which a terminal shows again how many runs were found
REFUSED = 3  # exit status when some logs gave no number
_Facts = dict[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Measure every run in logs, in folders of them, and in .zip, .tar and .tar.gz archives. "
        "Exit status: 0 all measured, 3 some refused, 2 wrong arguments."
    )
    parser.add_argument(
        "paths", type=_existing, nargs="+", metavar="PATH", help="a log, a folder or an archive"
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="the logs' format; by default, found from the content of each",
    )
    parser.add_argument(
        "--pattern",
        metavar="REGEX",
        help="instead of a format: what the line of an iteration looks like, with groups "
        "(?P<NAME>..) for iteration, for time, duration or duration_ms, and for samples (so far), "
        "span, epoch, rank and rate, if they are printed",
    )
    parser.add_argument(
        "--method",
        choices=("window", "published"),
        default="window",
        help="the window rule, or the method of the system's published extractor",
    )
    parser.add_argument(
        "--window",
        type=_window,
        metavar="FIRST:LAST|all",
        help="iterations as the log numbers them; by default, the 100 after the first 20, "
        "or all where these are refused; all: the widest window after the first 20 that the rule "
        "allows",
    )
    parser.add_argument(
        "--unit", metavar="NAME", help="what to count, such as tokens; by default, samples"
    )
    parser.add_argument(
        "--run",
        type=count,
        action=_InOrder,
        metavar="N",
        help="measure only this run of each log, counted from 1; the options after it are about "
        "that run; may be given again",
    )
    for option, read, name, text in (
        ("--global-batch", count, "N", "samples per printed step"),
        ("--batch-size", count, "B", "samples per device and batch"),
        ("--topology", _topology, "NnGg", "nodes and the devices on each, such as 2n8g"),
        ("--accumulation", count, "K", "batches per printed step, if gradients are accumulated"),
        ("--epoch-samples", count, "N", "samples in an epoch, if epochs are what the log prints"),
    ):
        parser.add_argument(option, type=read, action=_InOrder, metavar=name, help=text)
    parser.set_defaults(given=[])
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON object per run and line")
    output.add_argument(
        "--files", action="store_true", help="show every refused log, not only the first of a kind"
    )
    output.add_argument("--csv", action="store_true", help="the same fields, one row per run")
    parser.set_defaults(run=partial(run, parser))


class _InOrder(argparse.Action):
    """Keep an option with those before it: a fact is about the run that is named before it."""

    def __call__(self, _parser: Any, options: Any, value: Any, _option: Any = None) -> None:  # noqa: ANN401
        options.given = [*options.given, (self.dest, value)]


def _facts_in_order(given: Iterable[tuple[str, Any]]) -> tuple[_Facts, dict[int, _Facts]]:
    """The facts about every run, and those about single runs, by their number."""
    facts: _Facts = {}
    of_runs: dict[int, _Facts] = {}
    current = facts
    for name, value in given:
        if name == "run":
            current = of_runs.setdefault(value, {})
        else:
            current[name] = value
    return facts, {number: facts | known for number, known in of_runs.items()}


def _existing(text: str) -> Path:
    path = Path(text)
    if not text or not path.exists():  # an empty one would be the folder one is in
        raise argparse.ArgumentTypeError(f"{text or repr(text)}: no such file or folder")
    return path


def _window(text: str) -> tuple[int, int] | str:
    if text == WIDEST:
        return text
    match = re.fullmatch(r"(\d{1,12}):(\d{1,12})", text)
    if not match or int(match[1]) >= int(match[2]):
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: FIRST:LAST, FIRST below LAST, or {WIDEST}"
        )
    return int(match[1]), int(match[2])


def _topology(text: str) -> tuple[int, int]:
    if not re.search(TOPOLOGY, text):
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: nodes and devices, such as 2n8g")
    return topology_shape(text)


def run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print what each run gives: a table, or an object or a row per run as it is found."""
    if options.format not in (None, *formats()):
        meant = did_you_mean(options.format, formats())
        may = f"{', '.join(formats())}, as docs/log-formats.md shows them{meant}"
        parser.error(f"argument --format: got {options.format!r}; allowed: {may}")
    if options.pattern is not None:
        _check_pattern(parser, options)
    if options.unit not in (None, *all_counts()):
        may = allowed(options.unit, all_counts())
        parser.error(f"argument --unit: got {options.unit!r}; {may}")
    if options.method == "published" and options.window:
        parser.error("argument --window: --method published has a window of its own")
    facts, of_runs = _facts_in_order(options.given)
    for known in (facts, *of_runs.values()):
        others = [option for name, option in _FACTORS.items() if name in known]
        if "global_batch" in known and others:
            parser.error(f"argument --global-batch: not allowed with {' or '.join(others)}")
    widest = options.window == WIDEST
    ends = None if widest else options.window
    request = MeasureRequest(
        method=Method(
            options.method, unit=options.unit, ends=ends, widest=widest, otherwise_widest=True
        ),
        log_format=options.format,
        pattern=options.pattern,
        facts=_sources(facts),
        facts_of_runs={number: _sources(known) for number, known in of_runs.items()},
        include_unrecognised=True,
    )
    results = measure_paths(options.paths, request, processes=len(os.sched_getaffinity(0)))
    statuses: set[str] = set()

    def watched() -> Iterator[RunResult]:
        for result in results:
            statuses.add(result.measured.status)
            yield result

    if options.json or options.csv:
        measured = (result.measured for result in watched())
        lines = map(_object, measured) if options.json else csv_lines(measured)
    else:
        width = width_here()
        lines = table(list(_counted(watched())), width=width, files=options.files)
    for line in lines:
        print(line, flush=True)
    return REFUSED if "refused" in statuses else 0


def _check_pattern(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.format is not None:
        parser.error("argument --pattern: not allowed with --format")
    try:
        format_of(options.pattern)
    except ReperfError as error:
        parser.error(f"argument --pattern: {error}")


def _counted(results: Iterable[RunResult]) -> Iterator[RunResult]:
    """The results, counted on the terminal: the table comes when all of them are known."""
    shown, terminal = 0.0, sys.stderr.isatty()
    for number, result in enumerate(results, 1):
        if terminal and monotonic() - shown > OFTEN:
            shown = monotonic()
            print(f"\rruns: {number}", end="", file=sys.stderr, flush=True)
        yield result
    if shown:
        print("\r" + " " * 20, end="\r", file=sys.stderr, flush=True)


_FACTORS = {"batch_size": "--batch-size", "topology": "--topology"}
"""Facts that say the global batch, and the options that give them."""


def _sources(facts: _Facts) -> list[tuple[str, Any]]:
    """What the command line says about runs, as `reperf.measuring.measure.Sources`."""
    known = {name: value for name, value in facts.items() if name != "topology"}
    if "topology" in facts:
        known["nodes"], known["devices_per_node"] = facts["topology"]
    return [(COMMAND_LINE, list(known.items()))]


def _object(measured: Measurement) -> str:
    """A run as JSON, which has neither infinite numbers nor NaN: they become null."""
    fields = asdict(measured).items()
    odd = {name: None for name, value in fields if isinstance(value, float) and not isfinite(value)}
    return json.dumps(dict(fields) | odd)
