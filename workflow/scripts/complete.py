"""Close the report, or fail the call and name the cells to run again."""

from pathlib import Path

from reperf.complete import complete
from reperf.script import script

with script(snakemake.log[0]):
    complete(Path(snakemake.input.summary), Path(snakemake.output[0]), snakemake.params.profile)
