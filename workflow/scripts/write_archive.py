"""Archive a suite."""

from pathlib import Path

from reperf.archive.suite import write_archive
from reperf.config import load_report
from reperf.script import building

with building(snakemake):
    write_archive(load_report(snakemake.params.report), Path(snakemake.output[0]))
