# What all rule files share: the checked report, its plans, and what happens before and after jobs.

import re
import sys
import time
from functools import cache
from pathlib import Path

from reperf.archive.kept import keep_others
from reperf.building.code import code_behind, code_files, seen_from_here
from reperf.building.work_folder import lock_folder
from reperf.errors import one_line_errors, or_end
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, ARCHIVE, COMPLETE, PAGES
from reperf.plans.checking import checked_report, trained_anew
from reperf.plans.planning import Plans
from reperf.reruns import after_failure, after_success
from reperf.training.readiness import make_ready
from reperf.values import TOPOLOGY

PYTHON = sys.executable
SCRIPTS = Path(workflow.basedir, "workflow", "scripts")
BEGUN = time.time()

# What is wrong is said here, before there is a graph: a dry run asks neither `onstart` nor the jobs.
with one_line_errors():
    REPORT = checked_report(config, workflow)
    PLANS = Plans(REPORT)

RESULTS = PLANS.results
SUITES = list(PLANS.suites)


# On a cluster only runs are jobs; everything else happens where Snakemake was called.
localrules:
    all,
    archive,
    complete,
    convert,
    draw_epochs,
    draw_published_figures,
    environment,
    image,
    join_tables,
    make_set,
    measure,
    remember,
    report,
    summarise,
    survey,


wildcard_constraints:
    suite="|".join(map(re.escape, SUITES)),
    entry="[^/]+",  # `or_end` refuses the others, in less time than a list of all takes
    topology=TOPOLOGY.strip("^$"),
    repeat=r"[1-9]\d*",


# Lies where Snakemake keeps what it knows of earlier calls: without that, tables are made again.
MEMORY = ".snakemake/reperf"
if Path("results/suites").exists() and not Path(MEMORY).exists():
    Path(MEMORY).parent.mkdir(exist_ok=True)
    Path(MEMORY).touch()  # newer than all tables, whatever this call is for


rule remember:
    output:
        touch(MEMORY),
    message:
        "begin to remember what files are made from"


@cache
def code_of(script):
    """The library files behind a script: its rule's outputs are made again where one has changed."""
    return code_behind(SCRIPTS / f"{script}.py")


onstart:
    with one_line_errors():
        lock_folder(".")
        make_ready(REPORT, workflow)
        PLANS.write(anew=trained_anew(workflow, PLANS.runs))
        keep_others(PLANS.configs)


onerror:
    after_failure(PLANS, REPORT)


onsuccess:
    after_success(PLANS, since=BEGUN)
