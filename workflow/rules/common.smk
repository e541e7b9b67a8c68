# What all rule files share: the checked report, its plans, and what is not as they ask for it.

import atexit
import gc
import os
import re
import sys
import time
from functools import cache, wraps
from pathlib import Path

# A graph is millions of objects, none of them garbage: looking for some takes a tenth of planning,
# and a twentieth of a call with nothing to do, as soon as modules are imported.
gc.set_threshold(1_000_000)

from reperf.building.code import check_library, code_files, seen_from_here
from reperf.building.work_folder import check_folder, lock_folder
from reperf.building.made import List
from reperf.config import TOPOLOGY, load_report
from reperf.errors import faults_of, one_line_errors
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, ARCHIVE, COMPLETE, PAGES
from reperf.machine import resolve
from reperf.plans.checking import check_report
from reperf.plans.measured import measured_by
from reperf.plans.planning import Plans
from reperf.text import printable
from reperf.training.ends import fault_of_runs, keep_lost_runs, rerun_command
from reperf.training.slurm import cancel_forgotten, cancel_left_over
from reperf.training.slurm import check_cluster, check_profile
from reperf.written import read_written
from snakemake_logger_plugin_reperf import LogHandler

PYTHON = sys.executable
BEGUN = time.time()

# What is wrong is said here, before there is a graph: an exception of an input function would only
# make its rule vanish, and a dry run asks neither `onstart` nor the jobs.
with one_line_errors():
    check_folder(Path.cwd())
    check_library(Path(workflow.basedir))
    read_written(CALL.configfile)  # as Snakemake has, which lets a key appear twice
    REPORT = load_report(config, CALL.configuration)
    check_profile(REPORT, LogHandler.place, CALL.configfile)
    with faults_of(CALL.configfile):
        REPORT = resolve(REPORT)
    check_report(REPORT, CALL.configfile)
    PLANS = Plans(REPORT)

if left_out := REPORT.left_out():
    print(printable(f"reperf: left out of this report: {left_out}"), file=sys.stderr)

# The numbers on the screen are measured as those in the report.
LogHandler.suites = {suite.name: suite for suite in REPORT.suites}

SUITES = list(PLANS.suites)
MADE = List(PLANS.texts)
# A folder that is newer than any file, and whose contents nobody compares.
NEWER_THAN_ANY = "/proc/self"


# On a cluster only runs are jobs; everything else happens where Snakemake was called.
localrules:
    all,
    complete,
    convert,
    draw_epochs,
    draw_figures,
    draw_published_figures,
    environment,
    image,
    join_tables,
    make_set,
    measure,
    summarise,
    archive,
    report,


wildcard_constraints:
    suite="|".join(map(re.escape, SUITES)),
    entry="|".join(
        map(re.escape, sorted({run.run.entry for run in PLANS.runs.values()}))
    ),
    topology=TOPOLOGY.pattern,
    repeat=r"[1-9]\d*",


def say(line):
    """Tell the caller, in one write: Snakemake's lines come from another thread."""
    sys.stderr.write(f"reperf: {printable(line)}\n")


def or_end(input_function):
    """An input function that ends the call where it fails; Snakemake would let its rule vanish."""

    @wraps(input_function)
    def look(wildcards):
        with one_line_errors():
            try:
                return input_function(wildcards)
            except OSError as error:
                sys.exit(f"reperf: {printable(str(error))}")

    return look


@cache
def made_again(why):
    """An input for what must be made again, though it is there; says why, if there is a reason."""
    if why:
        say(f"{why}; it is made again")
    return NEWER_THAN_ANY


def unless_current(step):
    """An input function: none where a step's outputs are what its rule would make now."""
    known = {}

    @or_end
    def look(wildcards):
        named = tuple(wildcards.items())
        if named not in known:
            made_by = getattr(rules, step)
            given = [part for _, part in made_by.input.items()]
            inputs = (file for part in given for file in files(part, wildcards))
            outputs = files(list(made_by.output), wildcards)
            why = MADE.why_again(step, outputs, inputs)
            known[named] = [] if why is None else [made_again(why)]
        return known[named]

    return look


def files(part, wildcards):
    """A part of a rule's inputs or outputs as paths: it may be a function, a list or a pattern."""
    if callable(part):
        found = part(wildcards)
        return [found] if isinstance(found, str) else list(map(str, found))
    patterns = [part] if isinstance(part, str) else part
    return [str(pattern).format(**dict(wildcards.items())) for pattern in patterns]


def if_written(path):
    """An input function for a plan: before the first job of the first call there is none.

    It is "ancient", because its digest decides, and not its time.
    """

    return lambda wildcards: written(path.format(**dict(wildcards.items())))


def written(plan):
    return ancient(plan) if os.path.exists(plan) else []


def existing_plans(files):
    """Files without the plans among them that are not written yet; plans are "ancient" again."""
    plans = {file: Path(file).exists() for file in files if file in PLANS.texts}
    return [
        ancient(file) if file in plans else file
        for file in files
        if plans.get(file, True)
    ]


onstart:
    with one_line_errors():
        lock_folder(".")
        if REPORT.cluster:
            check_cluster(REPORT)
            cancel_left_over(Path.cwd())
        PLANS.write(anew=[*filter(is_wanted_anew, PLANS.runs)])
        check_images_start()


def say_last(line):
    """Print a line below everything that Snakemake prints."""
    atexit.register(print, line)


onerror:
    failed = CALL.failed
    if keep_lost_runs(run for run in PLANS.runs if f"{run}/run.json" in failed):
        say_last(
            "reperf: runs were lost; repeat the command to put them into the report"
        )
    elif COMPLETE in failed:
        say_last(
            f"run the failed cells again: {rerun_command(CALL.options, PLANS.profile)}"
        )
    if REPORT.cluster:
        with one_line_errors():
            cancel_forgotten(Path.cwd())


onsuccess:
    # A call that makes the whole report ends otherwise if a run has failed, see `complete`.
    if fault := fault_of_runs(PLANS.runs, of_this_call=True):
        again = rerun_command(CALL.options, PLANS.profile)
        sys.exit(f"reperf: {fault}; run it again: {again}")
    if Path(PAGES[0]).exists() and Path(PAGES[0]).stat().st_mtime > BEGUN:
        say_last("The report is in {0} and {1}".format(*PAGES))
