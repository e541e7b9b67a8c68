# What all rule files share: the checked report, and names for the parts of it that they need.

import atexit
import gc
import re
import shlex
import sys
from pathlib import Path

from reperf.building.code import check_library, code_of, seen_from_here
from reperf.building.hold import check_folder, hold_folder
from reperf.building.seals import Seal
from reperf.config import TOPOLOGY, load_report
from reperf.errors import faults_of, one_line_errors
from reperf.machine import (
    check_containers,
    check_data,
    check_fits,
    check_memory,
    resolve,
)
from reperf.reruns import rerun_command
from reperf.training.slurm import (
    cancel_left_over,
    check_cluster,
    check_profile,
    status_command,
)
from reperf.training.tries import keep_lost
from snakemake_logger_plugin_reperf import LogHandler

# A plan is millions of objects, none of them garbage: looking for some takes a tenth of planning.
gc.set_threshold(100_000)

# Snakemake does not quote Python's path in shell lines: in a folder with a space or a quote in its
# name, scripts would not start.
PYTHON = shlex.quote(sys.executable)
sys.executable = PYTHON

CONFIGURATION = CALL.configfile

with one_line_errors():
    check_folder(Path.cwd())
    check_library(CALL.root)
    REPORT = resolve(load_report(config, CONFIGURATION))
    with faults_of(CONFIGURATION):
        check_fits(REPORT)
        check_memory(REPORT)
        check_data(REPORT)

# The numbers on the screen are measured as those in the report.
LogHandler.suites = {suite.name: suite for suite in REPORT.suites}

SUITES = [suite.name for suite in REPORT.suites]
RUNS = {suite.name: REPORT.runs(suite) for suite in REPORT.suites}
ENTRIES = {entry.id for suite in REPORT.suites for entry in suite.entries}
PROFILE = "slurm" if REPORT.cluster else "local"
ALL_CORES = CALL.cores


# On a cluster only runs are jobs; everything else happens where Snakemake was called.
localrules:
    all,
    archive,
    complete,
    convert,
    convert_text,
    draw_figures,
    draw_published_figures,
    environment,
    image,
    join_tables,
    make_images,
    make_text,
    measure,
    report,
    summarise,


wildcard_constraints:
    suite="|".join(map(re.escape, SUITES)),
    entry="|".join(map(re.escape, sorted(ENTRIES))),
    topology=TOPOLOGY.pattern,
    repeat=r"\d+",


onstart:
    with one_line_errors(), no_empty_records():
        check_profile(REPORT, CALL.executor, CONFIGURATION)
        with faults_of(CONFIGURATION):
            check_containers(REPORT)
        hold_folder(".")
        if REPORT.cluster:
            check_cluster(REPORT)
            cancel_left_over(Path.cwd())
            CALL.ask_for_status_with(status_command())
        build_what_is_out_of_date()


def say(line):
    """Tell the caller, in one write: Snakemake's lines come from another thread."""
    sys.stderr.write(f"reperf: {line}\n")


def again(output, why=""):
    """Run the job that makes a file in this call, whatever Snakemake remembers of it."""
    if why and CALL.is_main:
        say(f"{why}; it is made again")
    CALL.run_again(output)


def built(output, params):
    """An input function that names no file, but checks the output: if its seal is broken, it is
    built again.

    Args:
        output: the first of the files that the rule makes, with its wildcards.
        params: the rule's own.
    """

    def look(wildcards):
        path = output.format(**dict(wildcards.items()))
        seal = Seal.of(path)
        if seal is None:
            if Path(path).exists():
                again(path)
        elif edited := seal.edited():
            again(path, f"{edited[0]}: has changed since it was built")
        elif not seal.holds(asked(params, wildcards)):
            again(path)
        return []

    return look


def asked(params, wildcards):
    """A rule's parameters, as its script will get them."""
    return {
        name: value(wildcards) if callable(value) else value
        for name, value in params.items()
    }


def say_last(line):
    """Print a line below everything that Snakemake prints."""
    atexit.register(print, line)


onerror:
    failed = CALL.failed_jobs("train")
    # A list, because every one of them is kept, not only the first.
    if any([keep_lost(Path(job.output.record).parent) for job in failed]):
        say_last(
            "reperf: runs were lost; repeat the command to put them into the report"
        )
    elif CALL.failed_jobs("complete"):
        say_last(f"run the failed cells again: {rerun_command(PROFILE)}")


onsuccess:
    if CALL.has_finished("report"):
        say_last("The report is in results/report.html and results/report.md")
