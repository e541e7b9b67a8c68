"""Draw the figures of a suite."""

from reperf.building.script import script
from reperf.drawing.figures import draw_suite
from reperf.files import write_checksums
from reperf.layout import FIGURES

with script(snakemake.log[0], guarded=False):
    tables = snakemake.input.measurements, snakemake.input.summary
    draw_suite(*tables, FIGURES.format(**snakemake.wildcards))
    write_checksums(snakemake.output.checksums, [*snakemake.output.svg, *snakemake.output.png])
