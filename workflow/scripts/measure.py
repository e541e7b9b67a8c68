"""Measure the runs of a suite: one row a run."""

from pathlib import Path

from reperf.config import Window
from reperf.own_runs import measure_own_runs
from reperf.script import script
from reperf.tables import MEASUREMENTS, write_table

with script(snakemake.log[0]):
    rows = measure_own_runs(
        map(Path, snakemake.params.folders), Window.model_validate(snakemake.params.window)
    )
    write_table(snakemake.output[0], rows, MEASUREMENTS)
