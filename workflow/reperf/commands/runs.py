"""`reperf runs`: name runs, so that Snakemake can be told to run just those again."""

import argparse
from pathlib import Path

from reperf.errors import ReperfError
from reperf.text import printable


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command to the parser of `reperf`."""
    parser = commands.add_parser(
        "runs",
        help="print the records of runs, for snakemake --forcerun",
        description="Print the record files of the runs that fit every option given, for "
        "`snakemake --profile local --forcerun $(reperf runs --failed)`.",
    )
    parser.add_argument("--suite")
    parser.add_argument("--system", help="all of its variants")
    parser.add_argument("--topology", help="such as 1n8g")
    parser.add_argument("--repeat", type=int)
    parser.add_argument(
        "--failed", action="store_true", help="runs that another try could still measure"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one path per line; status 1 if no run fits."""
    from reperf.layout import ALL_MEASUREMENTS, RUN_RECORD  # noqa: PLC0415
    from reperf.measuring.tables import read_measurements  # noqa: PLC0415
    from reperf.reruns import failed_runs, own_runs, runs_that_fit  # noqa: PLC0415 - pandas: 0.5 s

    if not Path(ALL_MEASUREMENTS).exists():
        raise ReperfError(f"{ALL_MEASUREMENTS}: not there; run the report first")
    measured = read_measurements(ALL_MEASUREMENTS)
    runs = failed_runs(measured) if options.failed else own_runs(measured)
    wanted = {name: getattr(options, name) for name in ("suite", "system", "topology", "repeat")}
    chosen = runs_that_fit(runs, wanted)
    for log in chosen["log"]:
        print(printable(str(Path(log).with_name(RUN_RECORD))))
    return 0 if len(chosen) else 1
