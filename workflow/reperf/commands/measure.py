"""`reperf measure`: the throughput in anyone's logs, or why there is none."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path
from shutil import get_terminal_size
from time import monotonic
from typing import TYPE_CHECKING, Any

from reperf.commands import count

if TYPE_CHECKING:
    from reperf.measuring.measure import Measurement

WIDEST = "all"
"""The window that is as wide as the log allows."""
OFTEN = 0.2
"""Seconds after which a terminal is told again how many runs were found."""
REFUSED = 3
"""Exit status when some logs gave no number."""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser(
        "measure",
        help="measure logs, whoever made them",
        description="Measure every run in logs, in folders of them, and in .zip, .tar and .tar.gz "
        "archives. Exit status: 0 all measured, 3 some refused, 2 wrong arguments.",
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
        action=_OneRun,
        metavar="N",
        help="measure only this run of each log, counted from 1; the options after it tell of "
        "that run; may be given again",
    )
    for option, read, name, text in (
        ("--global-batch", count, "N", "samples per printed step"),
        ("--batch-size", count, "B", "samples per device and batch"),
        ("--topology", _topology, "NnGg", "nodes and the devices on each, such as 2n8g"),
        ("--accumulation", count, "K", "batches per printed step, if gradients are accumulated"),
        ("--epoch-samples", count, "N", "samples in an epoch, if epochs are what the log prints"),
    ):
        parser.add_argument(option, type=read, action=_Fact, metavar=name, help=text)
    parser.set_defaults(facts={}, facts_of_runs={})
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON object per run and line")
    output.add_argument(
        "--files", action="store_true", help="show every refused log, not only the first of a kind"
    )
    output.add_argument("--csv", action="store_true", help="the same fields, one row per run")
    parser.set_defaults(run=partial(run, parser))


class _OneRun(argparse.Action):
    """Begin the facts about one run."""

    def __call__(self, _parser: Any, options: Any, number: Any, _option: Any = None) -> None:  # noqa: ANN401
        options.facts_of_runs = {number: {}, **options.facts_of_runs}
        options.run_told_of = number


class _Fact(argparse.Action):
    """A fact about the run named before it, or else about every run."""

    def __call__(self, _parser: Any, options: Any, value: Any, _option: Any = None) -> None:  # noqa: ANN401
        number = getattr(options, "run_told_of", None)
        if number is None:
            options.facts = options.facts | {self.dest: value}
        else:
            told = options.facts_of_runs[number] | {self.dest: value}
            options.facts_of_runs = options.facts_of_runs | {number: told}


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
    from reperf.config import topology_shape  # noqa: PLC0415 - a fifth of a second
    from reperf.values import TOPOLOGY  # noqa: PLC0415

    if not re.search(TOPOLOGY, text):
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: nodes and devices, such as 2n8g")
    return topology_shape(text)


def run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print what each run gives: a table, or an object or a row per run as it is found."""
    from reperf.logs.formats import formats  # noqa: PLC0415
    from reperf.measuring.answer import Question  # noqa: PLC0415 - half a second of libraries
    from reperf.measuring.folders import of_folders  # noqa: PLC0415
    from reperf.measuring.found_logs import answers  # noqa: PLC0415
    from reperf.measuring.measure import Method  # noqa: PLC0415
    from reperf.measuring.units import counts  # noqa: PLC0415
    from reperf.measuring.verdicts import csv_lines, table  # noqa: PLC0415
    from reperf.nearest import did_you_mean  # noqa: PLC0415

    if options.format not in (None, *formats()):
        meant = did_you_mean(options.format, formats())
        allowed = f"{', '.join(formats())}, as docs/log-formats.md shows them{meant}"
        parser.error(f"argument --format: got {options.format!r}; allowed: {allowed}")
    if options.pattern is not None:
        _check_pattern(parser, options)
    if options.unit not in (None, *counts()):
        meant = did_you_mean(options.unit, counts())
        parser.error(
            f"argument --unit: got {options.unit!r}; allowed: {', '.join(counts())}{meant}"
        )
    if options.method == "published" and options.window:
        parser.error("argument --window: --method published has a window of its own")
    told = {number: options.facts | facts for number, facts in options.facts_of_runs.items()}
    for facts in (options.facts, *told.values()):
        others = [option for name, option in _FACTORS.items() if name in facts]
        if "global_batch" in facts and others:
            parser.error(f"argument --global-batch: not allowed with {' or '.join(others)}")
    widest = options.window == WIDEST
    ends = None if widest else options.window
    question = Question(
        method=Method(
            options.method, unit=options.unit, ends=ends, widest=widest, otherwise_widest=True
        ),
        log_format=options.format,
        pattern=options.pattern,
        told=_told(options.facts),
        told_of_runs={number: _told(facts) for number, facts in told.items()},
        unread=True,
    )
    found = answers(options.paths, question, processes=len(os.sched_getaffinity(0)))
    refused = False

    def watched() -> Iterator[Any]:
        nonlocal refused
        for answer in found:
            refused = refused or answer.measured.status == "refused"
            yield answer

    if options.json or options.csv:
        measured = (answer.measured for answer in watched())
        lines = map(_object, measured) if options.json else csv_lines(measured)
    else:
        all_found = list(_counted(watched()))
        width = get_terminal_size().columns if sys.stdout.isatty() else None
        lines = table(
            [answer.measured for answer in all_found],
            of_folders(all_found),
            width=width,
            files=options.files,
        )
    for line in lines:
        print(line, flush=True)
    return REFUSED if refused else 0


def _check_pattern(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    from reperf.errors import ReperfError  # noqa: PLC0415
    from reperf.logs.user_pattern import format_of  # noqa: PLC0415

    if options.format is not None:
        parser.error("argument --pattern: not allowed with --format")
    try:
        format_of(options.pattern)
    except ReperfError as error:
        parser.error(f"argument --pattern: {error}")


def _counted(found: Iterable[Any]) -> Iterator[Any]:
    """What is found, counted on the terminal: the table comes when all of it is known."""
    shown, terminal = 0.0, sys.stderr.isatty()
    for number, one in enumerate(found, 1):
        if terminal and monotonic() - shown > OFTEN:
            shown = monotonic()
            print(f"\rruns: {number}", end="", file=sys.stderr, flush=True)
        yield one
    if shown:
        print("\r" + " " * 20, end="\r", file=sys.stderr, flush=True)


_FACTORS = {
    "batch_size": "--batch-size",
    "topology": "--topology",
}
"""Facts that say the global batch, and the options that give them."""


def _told(facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What the command line says about runs, as `reperf.measuring.measure.Told`."""
    known = {name: value for name, value in facts.items() if name != "topology"}
    if "topology" in facts:
        known["nodes"], known["devices_per_node"] = facts["topology"]
    return [("the command line", list(known.items()))]


def _object(measured: "Measurement") -> str:
    """A run as JSON, which has neither infinite numbers nor NaN: they become null."""
    found = asdict(measured).items()
    odd = {name: None for name, value in found if isinstance(value, float) and not isfinite(value)}
    return json.dumps(dict(found) | odd)
