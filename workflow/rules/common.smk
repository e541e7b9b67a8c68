# What all rule files share: the checked report, and names for what they ask of it.

import os
import re
import sys

from reperf.config import load_report
from reperf.errors import one_line_errors
from reperf.files import hold_folder
from reperf.machine import check_fits
from reperf.sources import code_of, seen_from_here

with one_line_errors():
    REPORT = load_report(config, source=str(workflow.configfiles[-1]))
    check_fits(REPORT)

SUITES = [suite.name for suite in REPORT.suites]
ENTRIES = {entry.id for suite in REPORT.suites for entry in suite.entries}
ALL_CORES = workflow.resource_settings.cores or 1


wildcard_constraints:
    suite="|".join(map(re.escape, SUITES)),
    entry="|".join(map(re.escape, sorted(ENTRIES))),
    topology=r"\d+n\d+g",
    repeat=r"\d+",


onstart:
    with one_line_errors():
        hold_folder(".")
    # A run must know whether it may fail (and be tried again) or has to record how it failed. The
    # retries are the profile's; jobs inherit the number, on cluster nodes too.
    os.environ["REPERF_TRIES"] = str(workflow.execution_settings.retries + 1)


onsuccess:
    print("The report is in results/report.html and results/report.md")
