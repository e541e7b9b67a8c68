"""Convert text to the parts of one record format."""

from pathlib import Path

from reperf.building.script import script
from reperf.data.text.convert_text import convert
from reperf.data.text.settings import TextSettings

with script(snakemake.log[0]):
    convert(
        TextSettings(**snakemake.params.settings),
        Path(snakemake.output[0]).parent,
        snakemake.wildcards.format,
        workers=snakemake.threads,
    )
