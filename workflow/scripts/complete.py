"""Close the report, or fail the call and name the cells to run again."""

from pathlib import Path

from reperf.building.script import building
from reperf.reruns import complete

with building(snakemake):
    tables = Path(snakemake.input.summary), Path(snakemake.input.measurements)
    complete(*tables, Path(snakemake.output[0]), snakemake.params.profile)
