"""Draw the figures of the published tables."""

from reperf.figures import draw_published
from reperf.script import building

with building(snakemake):
    draw_published(snakemake.output[0])
