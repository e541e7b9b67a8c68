"""Archive a suite."""

from pathlib import Path

from reperf.archive.suite import write_archive
from reperf.config import load_report
from reperf.script import script

with script(snakemake.log[0]):
    write_archive(load_report(snakemake.params.report), Path(snakemake.output[0]))
