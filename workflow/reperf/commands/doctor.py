"""`reperf doctor`: look at every node for what ruins benchmarks, before it ruins one."""

import argparse

from reperf.commands import ask_for_report
from reperf.layout import DIAGNOSIS
from reperf.terminal import announce
from reperf.text import count


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Look for what ruins benchmarks on every node where a profile runs its report. Exit "
        "status: 0 no error, though perhaps warnings; 1 something would spoil runs."
    )
    ask_for_report(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show what was found, and keep it where the report looks for it."""
    announce("reading the report")
    from rich.console import Console  # noqa: PLC0415 - a second of libraries, after the first line

    from reperf.doctor.examine import examine  # noqa: PLC0415
    from reperf.doctor.screen import show  # noqa: PLC0415
    from reperf.doctor.targets import prepare  # noqa: PLC0415

    nodes, report, configfile = prepare(options.profile, options.configfile)
    profile = options.profile or "default"
    diagnosis = examine(nodes, report, profile=profile, configfile=configfile)
    diagnosis.write(DIAGNOSIS)
    show(diagnosis, Console())
    errors, warnings = diagnosis.count("error"), diagnosis.count("warning")
    print(f"{count(errors, 'error')}, {count(warnings, 'warning')}; all of it is in {DIAGNOSIS}")
    return 1 if errors else 0
