"""Write the report."""

from pathlib import Path

from reperf.building.code import seen_from_here
from reperf.building.made import making
from reperf.config import load_report
from reperf.doctor.diagnosis import Diagnosis
from reperf.layout import (
    ALL_MEASUREMENTS,
    ALL_SUMMARY,
    DIAGNOSIS,
    PAGES,
    PUBLISHED_FIGURES,
    PUBLISHED_FILES,
    REPORT_PLAN,
    tables_of,
)
from reperf.measuring.again import check_tables
from reperf.plans.measured import measured_by
from reperf.plans.report_plan import ReportPlan
from reperf.plans.suite_plan import SuitePlan
from reperf.report import write_report
from reperf.tables import read_measurements, read_summary
from reperf.training.record import records_of


def run() -> None:
    told = ReportPlan.read(REPORT_PLAN)
    plans = [SuitePlan.of(suite) for suite in told.suites]
    diagnosis = [str(DIAGNOSIS)] if DIAGNOSIS.exists() else []
    inputs = [REPORT_PLAN, ALL_MEASUREMENTS, ALL_SUMMARY, PUBLISHED_FIGURES, *diagnosis]
    inputs += seen_from_here(PUBLISHED_FILES)
    for plan in plans:
        name = plan.suite.name
        inputs += [*measured_by(plan), *tables_of(name), *plan.suite.figures, *plan.descriptions()]
    with making("report", PAGES, inputs):
        for plan in plans:
            check_tables(plan.suite, plan.cells, plan.plans)
        html, markdown = map(Path, PAGES)
        write_report(
            load_report(told.report, REPORT_PLAN),
            records_of(run for plan in plans for run in plan.runs),
            read_measurements(ALL_MEASUREMENTS),
            read_summary(ALL_SUMMARY),
            figures=Path(PUBLISHED_FIGURES).parent,
            html=html,
            markdown=markdown,
            diagnosis=next(map(Diagnosis.read, diagnosis), None),
        )
