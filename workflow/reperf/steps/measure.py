"""Measure the runs and the logs of a suite: one row each."""

from reperf.building.made import making
from reperf.layout import SUITE_MEASUREMENTS
from reperf.measuring.log_sources import measure_suite
from reperf.plans.measured import measured_by
from reperf.plans.suite_plan import SuitePlan
from reperf.tables import MEASUREMENTS, write_table


def run(suite: str) -> None:
    plan, output = SuitePlan.of(suite), SUITE_MEASUREMENTS.format(suite=suite)
    with making("measure", [output], [*measured_by(plan), *plan.descriptions()]):
        write_table(output, measure_suite(plan.suite, plan.runs, plan.plans), MEASUREMENTS)
