"""Archive a suite."""

from pathlib import Path

from reperf.archive.contents import write_archive
from reperf.building.script import building
from reperf.config import load_report

with building(snakemake):
    write_archive(load_report(snakemake.params.report), Path(snakemake.output[0]))
