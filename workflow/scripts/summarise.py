"""Summarise a suite: one row a cell."""

from reperf.building.script import script
from reperf.measuring.summary import summarise
from reperf.plans.plan_files import SuitePlan
from reperf.tables import SUMMARY, read_measurements, write_table

with script(snakemake.log[0], guarded=False):
    plan = SuitePlan.of(snakemake.wildcards.suite)
    measured = read_measurements(snakemake.input.measurements)
    rows = summarise(measured, plan.cells, unit=plan.suite.unit, baseline=plan.suite.baseline)
    write_table(snakemake.output[0], rows, SUMMARY)
