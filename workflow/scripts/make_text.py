"""Make the embedded text."""

from pathlib import Path

from reperf.building.script import script
from reperf.data.text.embedded_text import make_text

with script(snakemake.log[0]):
    make_text(Path(snakemake.output[0]))
