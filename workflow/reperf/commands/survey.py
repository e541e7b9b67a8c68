"""`reperf survey`: which node or link is slow, and which node computes different results."""

import argparse
import re
from pathlib import Path

from reperf.building.work_folder import lock_folder
from reperf.commands import ask_for_report, count
from reperf.doctor.targets import prepare
from reperf.errors import ReperfError
from reperf.survey.campaign import survey
from reperf.training.slurm import cancel_left_jobs


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Train a single-node cell several times on every node of the cluster, and name the nodes "
        "that are slow or compute different results. Exit status: 0 none is named and all answer, "
        "1 otherwise."
    )
    ask_for_report(parser)
    parser.add_argument("--suite", metavar="NAME", help="whose cell; default: the report's first")
    parser.add_argument("--runs", type=_runs, default=5, metavar="N", help="a node; default: 5")
    parser.add_argument(
        "--margin",
        type=_margin,
        default=1.0,
        metavar="PERCENT",
        help="by how much a node must be slower to be named; default: 1%%",
    )
    parser.add_argument(
        "--input", action="store_true", help="read the suite's input; default: read nothing"
    )
    parser.add_argument(
        "--at-once",
        type=count,
        metavar="N",
        help="number of nodes that train at the same time; default: all",
    )
    parser.add_argument(
        "--links",
        type=count,
        nargs="?",
        const=2,
        default=0,
        metavar="N",
        help="then train on pairs to name slow links: each node with N others, 2 if left out",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
    parser.set_defaults(run=run)


def _runs(text: str) -> int:
    if (runs := count(text)) < 2:
        raise argparse.ArgumentTypeError(
            "got 1; allowed: 2 or more: one run does not show how runs scatter"
        )
    return runs


def _margin(text: str) -> float:
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,6})?) ?%?", text)
    if not match or not 0 < float(match[1]) <= 50:
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: a percentage above 0% and up to 50%, such as 1%"
        )
    return float(match[1])


def run(options: argparse.Namespace) -> int:
    """Survey the nodes, and show what was found."""
    _, report, _ = prepare(options.profile, options.configfile)
    if not report.cluster:
        raise ReperfError(
            "a survey compares nodes, and this is one; allowed: --profile slurm or hosts"
        )
    lock_folder(".")
    if report.slurm:
        cancel_left_jobs()  # `prepare` has checked the rest
    return survey(
        report,
        options.suite,
        reads=options.input,
        runs=options.runs,
        margin=options.margin,
        at_once=options.at_once,
        links=options.links,
        as_json=options.json,
        junit=options.junit,
    )
