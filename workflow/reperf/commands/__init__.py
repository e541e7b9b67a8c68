import argparse
import re
from pathlib import Path


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
        default="local",
        help="as for snakemake: local (the default: this machine), slurm, or a folder of your own",
    )
    parser.add_argument(
        "--configfile", type=Path, metavar="FILE", help="instead of the profile's own report"
    )
