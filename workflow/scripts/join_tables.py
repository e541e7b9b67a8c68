"""Concatenate the tables of all suites."""

from reperf.building.script import building
from reperf.measuring.tables import MEASUREMENTS, SUMMARY, join_tables

with building(snakemake):
    join_tables(snakemake.input.measurements, snakemake.output.measurements, MEASUREMENTS)
    join_tables(snakemake.input.summaries, snakemake.output.summary, SUMMARY)
