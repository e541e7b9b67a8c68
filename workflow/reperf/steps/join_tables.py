"""Concatenate the tables of all suites."""

from reperf.building.made import making
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, REPORT_PLAN, tables_of
from reperf.plans.report_plan import ReportPlan
from reperf.tables import MEASUREMENTS, SUMMARY, join_tables


def run() -> None:
    tables = [tables_of(suite) for suite in ReportPlan.read(REPORT_PLAN).suites]
    measurements, summaries = zip(*tables, strict=True)
    inputs = [REPORT_PLAN, *measurements, *summaries]
    with making("join_tables", [ALL_MEASUREMENTS, ALL_SUMMARY], inputs):
        join_tables(measurements, ALL_MEASUREMENTS, MEASUREMENTS)
        join_tables(summaries, ALL_SUMMARY, SUMMARY)
