"""Summarise a suite: one row per cell."""

from reperf.building.script import building
from reperf.config import Cell
from reperf.measuring.summary import summarise
from reperf.measuring.tables import SUMMARY, read_measurements, write_table

with building(snakemake):
    rows = summarise(
        read_measurements(snakemake.input.measurements),
        map(Cell.model_validate, snakemake.params.cells),
        unit=snakemake.params.unit,
        baseline=snakemake.params.baseline,
    )
    write_table(snakemake.output[0], rows, SUMMARY)
