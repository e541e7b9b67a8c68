"""`reperf archive`: check archives, or make the tables, figures and page of one again."""

import argparse
import sys
from pathlib import Path

from reperf import __version__
from reperf.errors import ReperfError
from reperf.text import printable


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser("archive", help="check archives of suites, or rebuild from one")
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    archive = "such as archive/resnet50-fp32.zip"
    said = "find any changed, missing or added byte"
    verify = actions.add_parser("verify", help=said, description=f"{said.capitalize()}.")
    verify.add_argument("files", type=Path, nargs="+", metavar="FILE", help=archive)
    verify.set_defaults(run=run_verify)

    said = "make tables, figures and page again from the logs, and compare the bytes"
    rebuild = actions.add_parser("rebuild", help=said, description=f"{said.capitalize()}.")
    rebuild.add_argument("file", type=Path, metavar="FILE", help=archive)
    rebuild.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="where to; new or empty"
    )
    rebuild.set_defaults(run=run_rebuild)


def run_verify(options: argparse.Namespace) -> int:
    """Say of each archive how many files were found unchanged, or what is wrong with it."""
    from reperf.archive.container import verified  # noqa: PLC0415

    status = 0
    for file in options.files:
        try:
            with verified(file) as archive:
                said = f"{file}: {len(archive.namelist())} files, all as they were archived"
                print(printable(said))
        except ReperfError as fault:
            print(f"reperf: {fault}", file=sys.stderr)
            status = 1
    return status


def run_rebuild(options: argparse.Namespace) -> int:
    """Name what came out the same, and what another version or commit wrote otherwise."""
    from reperf.archive.rebuild import rebuild  # noqa: PLC0415 - matplotlib takes a second

    made = rebuild(options.file, options.to)
    for name in made.same:
        print(printable(f"{options.to / name}: the same bytes as in {options.file}"))
    this = made.maker in ("", __version__)
    who = f"an earlier commit of reperf {__version__}" if this else f"reperf {made.maker}"
    for name, (how, other) in made.by_another.items():
        print(printable(f"{options.to / name}: {how} in {options.file}, which {who} wrote{other}"))
    return 0
