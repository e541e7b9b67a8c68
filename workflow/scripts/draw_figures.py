"""Draw the figures of a suite."""

from reperf.figures import draw_suite
from reperf.script import script

with script(snakemake.log[0]):
    draw_suite(snakemake.input.summary, snakemake.params.stem)
