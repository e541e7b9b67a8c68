"""Draw the figures of a suite."""

from pathlib import Path

from reperf.building.script import script
from reperf.drawing.figures import draw_suite
from reperf.files import write_checksums
from reperf.layout import FIGURES

with script(snakemake.log[0], guarded=False):
    tables = snakemake.input.measurements, snakemake.input.summary
    stem = FIGURES.format(**snakemake.wildcards)
    kinds = [Path(file).stem.rpartition("-")[2] for file in snakemake.output.svg]
    draw_suite(*tables, stem, kinds)
    write_checksums(snakemake.output.checksums, [*snakemake.output.svg, *snakemake.output.png])
