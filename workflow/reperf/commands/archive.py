"""`reperf archive`: check an archive, or make its tables and figures again."""

import argparse
from pathlib import Path

from reperf.text import printable


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser("archive", help="check an archive of a suite, or rebuild from it")
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    verify = actions.add_parser("verify", help="find any changed, missing or added byte")
    verify.add_argument("file", type=Path)
    verify.set_defaults(run=run_verify)

    rebuild = actions.add_parser(
        "rebuild", help="make the tables and figures again from the logs, and compare the bytes"
    )
    rebuild.add_argument("file", type=Path)
    rebuild.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="new or empty")
    rebuild.set_defaults(run=run_rebuild)


def run_verify(options: argparse.Namespace) -> int:
    """Print how many files were found unchanged."""
    from reperf.archive.container import verified  # noqa: PLC0415

    with verified(options.file) as archive:
        said = f"{options.file}: {len(archive.namelist())} files, all as they were archived"
        print(printable(said))
    return 0


def run_rebuild(options: argparse.Namespace) -> int:
    """Name the tables and figures that came out the same."""
    from reperf.archive.rebuild import rebuild  # noqa: PLC0415 - matplotlib takes a second

    for name in rebuild(options.file, options.to):
        print(printable(f"{options.to / name}: the same bytes as in {options.file}"))
    return 0
