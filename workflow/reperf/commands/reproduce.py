"""`reperf reproduce`: measure an archive's suite again, here, and say whether the numbers agree."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from reperf.archive.reproduce import CONFIGURATION, prepare
from reperf.commands import ask_for_files
from reperf.commands.compare import BAD_INPUT, ask_for_page, ask_for_threshold, print_lines, show
from reperf.errors import ReperfError
from reperf.files import write_whole
from reperf.layout import ALL_MEASUREMENTS
from reperf.measuring.comparison_output import Compared, as_object, as_percentage, compare_paths
from reperf.text import count, listed

NOT_REPRODUCED, CANNOT_TELL = 1, 3  # exit statuses


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Run the suite of an archive here, with its configuration and its locks, in a new folder. "
        "Exit status: 0 reproduced, 1 not reproduced, 2 wrong arguments or input, or the workflow "
        "could not run, 3 cannot tell. A second call continues."
    )
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="of a suite")
    parser.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="a new folder to work in"
    )
    ask_for_threshold(parser)
    parser.add_argument(
        "--trainers",
        action="store_true",
        help="run the archive's trainers instead of this checkout's: code that the archive's "
        "maker wrote",
    )
    parser.add_argument("--profile", help="as for snakemake: slurm, hosts, or a folder of your own")
    ask_for_files(parser, "override the archive's configuration, such as site.yaml")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    ask_for_page(parser)
    parser.set_defaults(run=run, status_of_faults=BAD_INPUT)


def run(options: argparse.Namespace) -> int:
    """Run an archive's suite again, and print the verdict."""
    prepared = prepare(options.archive, options.to, its_code=options.trainers)
    code = "the archive's" if prepared.with_its_code else "this checkout's"
    lines = [f"{options.archive}: SHA-256 {prepared.archive_sha256}"]
    for names, whose in ((prepared.locks, "the archive's"), (prepared.code, code)):
        if names:
            lines.append(f"differs, {whose} runs: {listed(names)}")
    if not options.json:
        print_lines(lines)
    status = _run_workflow(options)
    table = options.to / ALL_MEASUREMENTS
    if status and not table.exists():
        raise ReperfError(f"{options.to}: snakemake ended with status {status}: see above")
    compared = compare_paths(options.archive, options.to, options.threshold)
    if options.html:
        from reperf.report.html import render_comparison  # noqa: PLC0415 - libraries

        write_whole(options.html, render_comparison(compared))
    verdict, code_of_exit = verdict_of(compared)
    if options.json:
        found = {"verdict": verdict, "archive_sha256": prepared.archive_sha256}
        differing = {"locks": prepared.locks, "code": prepared.code}
        answer = as_object(compared) | {"exit_status": code_of_exit}
        print(json.dumps(found | differing | answer, indent=2, ensure_ascii=False))
    else:
        show(compared)
        print_lines([verdict])
    return code_of_exit


def _run_workflow(options: argparse.Namespace) -> int:
    """Call Snakemake in the folder; what it prints goes to standard error."""
    profile = ["--profile", options.profile] if options.profile else []
    files = [CONFIGURATION, *(str(path.absolute()) for path in options.configfile)]
    command = [sys.executable, "-m", "snakemake", *profile, "--configfile", *files]
    library = {"PYTHONPATH": str((options.to / "workflow").absolute())}
    answer = subprocess.run(
        command, cwd=options.to, env=os.environ | library, stdout=sys.stderr, check=False
    )
    return answer.returncode


def verdict_of(compared: Compared) -> tuple[str, int]:
    """Whether all cells are the same, in words, and the exit status.

    Each cell is tested for equivalence at 2.5 % on either side. That all are equivalent needs no
    correction for their number: R. L. Berger, Multiparameter Hypothesis Testing and Acceptance
    Sampling, Technometrics 24 (1982), 295-300.
    """
    cells = compared.comparison.cells
    within = as_percentage(compared.threshold)
    apart = [
        compared.names[cell.cell]
        for cell in cells
        if cell.verdict.judgement in ("slower", "faster", "no longer measured", "newly measured")
    ]
    if apart:
        return f"not reproduced within {within}: {'; '.join(apart)}", NOT_REPRODUCED
    tried = [cell for cell in cells if cell.verdict.judgement != "never measured"]
    same = [cell for cell in tried if cell.verdict.judgement == "same"]
    if tried and len(same) == len(tried) and not compared.comparison.only_base:
        return f"reproduced within {within}: {count(len(same), 'cell')}", 0
    return (
        f"cannot tell whether it is reproduced within {within}: {len(same)} of {len(tried)} cells "
        "are the same",
        CANNOT_TELL,
    )
