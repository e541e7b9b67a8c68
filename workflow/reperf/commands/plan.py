"""`reperf plan`: what a report will cost, before it starts."""

import argparse
from typing import Any

from reperf.commands import ask_for_report
from reperf.text import printable


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser(
        "plan",
        help="tell what a report will cost: runs, device hours, downloads, disk",
        description="Tell what a report asks for: its runs and the device hours that they take at "
        "most, what is downloaded, disk, memory, and what cannot be run, and why. Nothing is "
        "started or written.",
    )
    ask_for_report(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the lines."""
    from reperf.configfiles import read_profile  # noqa: PLC0415 - a second of libraries
    from reperf.plans.costs import describe_costs  # noqa: PLC0415

    report, configfile, _ = read_profile(options.profile, options.configfile)
    for line in describe_costs(report, configfile):
        print(printable(line))
    return 0
