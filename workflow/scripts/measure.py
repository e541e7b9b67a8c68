"""Measure the runs and logs of a suite: one row each."""

from pathlib import Path

from reperf.config import Suite, Window
from reperf.measuring.log_sources import measure_suite
from reperf.script import script
from reperf.tables import MEASUREMENTS, write_table

with script(snakemake.log[0]):
    suite = Suite.model_validate(snakemake.params.suite)
    window = Window.model_validate(snakemake.params.window)
    rows = measure_suite(suite, map(Path, snakemake.params.folders), window)
    write_table(snakemake.output[0], rows, MEASUREMENTS)
