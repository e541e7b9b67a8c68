"""Measure the runs and the logs of a suite: one row each."""

from reperf.building.script import script
from reperf.measuring.suite_rows import measure_suite
from reperf.plans.plan_files import SuitePlan
from reperf.tables import MEASUREMENTS, write_table

with script(snakemake.log[0], guarded=False):
    plan = SuitePlan.of(snakemake.wildcards.suite)
    write_table(snakemake.output[0], measure_suite(plan.suite, plan.runs, plan.plans), MEASUREMENTS)
