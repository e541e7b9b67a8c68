"""Measure the runs and logs of a suite: one row each."""

from reperf.building.script import building
from reperf.config import Run, Suite
from reperf.measuring.log_sources import measure_suite
from reperf.measuring.tables import MEASUREMENTS, write_table

with building(snakemake):
    suite = Suite.model_validate(snakemake.params.suite)
    runs = map(Run.model_validate, snakemake.params.runs)
    write_table(snakemake.output[0], measure_suite(suite, runs), MEASUREMENTS)
