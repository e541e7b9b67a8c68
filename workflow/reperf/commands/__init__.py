import argparse
import re
from pathlib import Path

COMMANDS = {
    "archive": "check archives of suites, sign them, or rebuild from one",
    "compare": "compare two reports, or two folders of logs, cell by cell",
    "config": "check, begin or explain a configuration",
    "doctor": "look at every node for what ruins benchmarks",
    "estimate": "estimate what a report will cost: runs, hours, downloads, disk",
    "export": "print a suite's table as Markdown, LaTeX or CSV",
    "history": "how the cells of many reports changed over time, and where they stepped",
    "manifest": "print the pods in which a report trains, for kubectl apply",
    "measure": "measure logs, whoever made them",
    "noise": "how much numbers vary between reports of the same build: the threshold for compare",
    "reproduce": "measure an archive's suite again, and say whether the numbers agree",
    "runs": "show runs, or name their records for snakemake --forcerun",
    "survey": "train one short cell on every node, and name slow nodes and links",
    "systems": "list which system trains what, in which precision, and what is installed here",
}
"""Command -> what it does. Its module adds its options to a parser and sets `run`, a function that
takes the parsed options and returns an exit status."""


def count(text: str) -> int:
    """A whole number above 0, as an argument gives it."""
    if not re.fullmatch(r"[1-9]\d{0,11}", text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: a whole number above 0, of up to 12 digits"
        )
    return int(text)


def ask_for_report(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which report is meant."""
    parser.add_argument(
        "--profile",
        help="as for snakemake: slurm, hosts, or a folder of your own; left out: this machine",
    )
    ask_for_files(parser, "instead of the report that snakemake makes by itself")


def ask_for_files(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add --configfile, which names files that are merged as Snakemake merges them."""
    parser.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help=f"{purpose}; of several files, such as a report and site.yaml, the later counts more",
    )
