"""Draw the figures of a suite."""

from reperf.figures import draw_suite
from reperf.script import building

with building(snakemake):
    draw_suite(snakemake.input.summary, snakemake.params.stem)
