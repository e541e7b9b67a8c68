"""Draw how long epochs of a suite take, and with how much memory, beside what is published."""

from reperf.building.script import script
from reperf.drawing.figures import draw_suites_epochs
from reperf.files import write_checksums
from reperf.layout import FIGURES

with script(snakemake.log[0], guarded=False):
    draw_suites_epochs(snakemake.input.summary, FIGURES.format(**snakemake.wildcards))
    write_checksums(snakemake.output.checksums, [snakemake.output.svg, snakemake.output.png])
