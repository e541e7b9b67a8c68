"""Concatenate the tables of all suites."""

from reperf.building.script import script
from reperf.measuring.node_effects import slow_nodes, with_marks
from reperf.tables import (
    MEASUREMENTS,
    SUMMARY,
    join_tables,
    read_measurements,
    read_summary,
    write_table,
)

with script(snakemake.log[0], guarded=False):
    join_tables(snakemake.input.measurements, snakemake.output.measurements, MEASUREMENTS)
    summary, measured = snakemake.output.summary, snakemake.output.measurements
    join_tables(snakemake.input.summaries, summary, SUMMARY)
    if slow := slow_nodes(read_measurements(measured)):  # which only all suites together show
        rows = with_marks(read_summary(summary), slow).to_dict("records")
        write_table(summary, rows, SUMMARY)
