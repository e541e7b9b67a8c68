# What all rule files share: the checked report, and names for what they ask of it.

import os
import re
import sys

from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.files import hold_folder
from reperf.machine import check_fits
from reperf.sources import library

try:
    report = load_report(config, source=str(workflow.configfiles[-1]))
    check_fits(report)
except ReperfError as error:
    sys.exit(f"reperf: {error}")

SUITES = [suite.name for suite in report.suites]
ENTRIES = {entry.id for suite in report.suites for entry in suite.entries}
ALL_CORES = workflow.resource_settings.cores or 1

# A job must know whether it may fail (and be tried again) or has to record how it failed. The
# retries are the profile's; jobs on cluster nodes inherit the number through the environment.
os.environ.setdefault("REPERF_TRIES", str(workflow.execution_settings.retries + 1))


wildcard_constraints:
    suite="|".join(map(re.escape, SUITES)),
    entry="|".join(map(re.escape, sorted(ENTRIES))),
    topology=r"\d+n\d+g",
    repeat=r"\d+",


onstart:
    try:
        hold_folder(".")
    except ReperfError as error:
        sys.exit(f"reperf: {error}")


onsuccess:
    print("The report is in results/report.html and results/report.md")
