"""`reperf estimate`: what a report will cost, before it starts."""

import argparse

from reperf.commands import ask_for_report, count
from reperf.configfiles import read_profile
from reperf.errors import ReperfError
from reperf.plans.checking import check_profile, check_report
from reperf.plans.costs import describe_costs
from reperf.text import printable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Estimate what a report will cost: its runs, the hours that they usually take and take at "
        "most, downloads, disk and memory; and say whether its repeats can rank its systems, and "
        "what cannot run, and why. Nothing is started or written. The exit status is 1 if the "
        "report would be refused as it is."
    )
    ask_for_report(parser)
    parser.add_argument(
        "--devices",
        type=count,
        metavar="N",
        help="estimate for one node with N GPUs in place of this machine",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the lines; the report is refused as the workflow would refuse it."""
    report, name, settings = read_profile(options.profile, options.configfile, options.devices)
    if not options.devices:
        check_profile(report, has_jobs="jobs" in settings, configfile=name)
    for line in describe_costs(report):
        print(printable(line), flush=True)  # before what standard error says
    try:
        check_report(report, name)
    except ReperfError as fault:
        is_here = not options.devices and not report.cluster
        elsewhere = "; for another machine: --devices N" if is_here else ""
        raise ReperfError(f"refused as it is: {fault}{elsewhere}") from None
    return 0
