"""Draw the figures of the published tables."""

from reperf.building.script import building
from reperf.drawing.figures import draw_published

with building(snakemake):
    draw_published(snakemake.output[0])
