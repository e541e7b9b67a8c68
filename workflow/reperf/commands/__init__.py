import argparse
import re
import sys
from pathlib import Path


def count(text: str) -> int:
    """A whole number above 0, as an argument gives it."""
    if not re.fullmatch(r"[1-9]\d{0,11}", text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: a whole number above 0, of up to 12 digits"
        )
    return int(text)


def tell(line: str) -> None:
    """Say what begins; standard output holds nothing but findings."""
    print(f"{line} ..", file=sys.stderr, flush=True)


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
