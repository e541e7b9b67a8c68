"""Convert images to the parts of one record format."""

from pathlib import Path

from reperf.building.script import script
from reperf.data.images.convert_images import convert

with script(snakemake.log[0]):
    convert(
        Path(snakemake.params.images),
        Path(snakemake.output[0]).parent,
        snakemake.wildcards.format,
        parts=snakemake.params.parts,
        workers=snakemake.threads,
        seed=snakemake.params.seed,
    )
