"""Draw the figures of the published tables."""

from reperf.figures import draw_published
from reperf.script import script

with script(snakemake.log[0]):
    draw_published(snakemake.output[0])
