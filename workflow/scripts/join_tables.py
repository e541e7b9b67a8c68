"""Put the tables of all suites below each other."""

from reperf.script import script
from reperf.tables import MEASUREMENTS, SUMMARY, join_tables

with script(snakemake.log[0]):
    join_tables(snakemake.input.measurements, snakemake.output.measurements, MEASUREMENTS)
    join_tables(snakemake.input.summaries, snakemake.output.summary, SUMMARY)
