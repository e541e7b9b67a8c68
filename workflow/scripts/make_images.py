"""Make the embedded image set."""

from pathlib import Path

from reperf.building.script import script
from reperf.data.images.embedded_images import make_images

with script(snakemake.log[0]):
    make_images(Path(snakemake.output[0]).parent)
