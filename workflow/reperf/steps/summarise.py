"""Summarise a suite: one row a cell."""

from reperf.building.made import making
from reperf.layout import tables_of
from reperf.measuring.summary import summarise
from reperf.plans.suite_plan import SuitePlan
from reperf.tables import SUMMARY, read_measurements, write_table


def run(suite: str) -> None:
    plan = SuitePlan.of(suite)
    measurements, output = tables_of(suite)
    with making("summarise", [output], [*plan.files, *plan.descriptions(), measurements]):
        measured = read_measurements(measurements)
        rows = summarise(measured, plan.cells, unit=plan.suite.unit, baseline=plan.suite.baseline)
        write_table(output, rows, SUMMARY)
