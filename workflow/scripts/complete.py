"""Close the report, or fail the call and name the cells to run again."""

from pathlib import Path

from reperf.complete import complete
from reperf.script import building

with building(snakemake):
    tables = Path(snakemake.input.summary), Path(snakemake.input.measurements)
    complete(*tables, Path(snakemake.output[0]), snakemake.params.profile)
