"""Concatenate the tables of all suites."""

from reperf.building.script import script
from reperf.tables import MEASUREMENTS, SUMMARY, join_tables

with script(snakemake.log[0], guarded=False):
    join_tables(snakemake.input.measurements, snakemake.output.measurements, MEASUREMENTS)
    join_tables(snakemake.input.summaries, snakemake.output.summary, SUMMARY)
