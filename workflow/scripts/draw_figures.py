"""Draw the figures of a suite."""

from reperf.building.script import building
from reperf.drawing.figures import draw_suite

with building(snakemake):
    draw_suite(snakemake.input.summary, snakemake.params.stem)
