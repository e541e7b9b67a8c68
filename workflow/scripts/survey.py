"""Survey the nodes of the report's cluster, as `reperf survey` does without options."""

import sys

from reperf.building.script import script
from reperf.config import load_report
from reperf.layout import REPORT_PLAN
from reperf.plans.plan_files import ReportPlan
from reperf.survey.campaign import survey

with script(snakemake.log[0], guarded=False):
    report = load_report(ReportPlan.read(REPORT_PLAN).report, REPORT_PLAN)
    survey(report, announce=lambda line: print(line, file=sys.stderr))
