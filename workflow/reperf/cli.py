"""The `reperf` command: what people ask for outside the workflow."""

import argparse
import sys
from collections.abc import Sequence

from reperf import __version__
from reperf.commands import archive, config, doctor, measure, runs
from reperf.errors import ReperfError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0 well, 1 a ReperfError, 2 wrong arguments)."""
    parser = argparse.ArgumentParser(prog="reperf", description=__doc__)
    parser.add_argument("--version", action="version", version=f"reperf {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except ReperfError as error:
        print(f"reperf: {error}", file=sys.stderr)
        return 1


# Each adds one command: its parser, with `run` set to a function that takes the parsed options
# and returns an exit status. What a command needs is imported when it runs.
COMMANDS = (archive.add, config.add, doctor.add, measure.add, runs.add)
