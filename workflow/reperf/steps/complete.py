"""Close the report, or fail the call and name the cells to run again."""

from pathlib import Path

from reperf.building.made import making
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, ARCHIVE, COMPLETE, PAGES, REPORT_PLAN
from reperf.plans.report_plan import ReportPlan
from reperf.reruns import complete


def run() -> None:
    plan = ReportPlan.read(REPORT_PLAN)
    archives = [ARCHIVE.format(suite=suite) for suite in plan.suites]
    inputs = [REPORT_PLAN, ALL_MEASUREMENTS, ALL_SUMMARY, *PAGES, *archives]
    with making("complete", [COMPLETE], inputs):
        complete(Path(ALL_SUMMARY), Path(ALL_MEASUREMENTS), Path(COMPLETE))
