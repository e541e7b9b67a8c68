"""Draw the figures of the published tables."""

from reperf.building.script import script
from reperf.drawing.figures import draw_published

with script(snakemake.log[0], guarded=False):
    draw_published(snakemake.output[0])
