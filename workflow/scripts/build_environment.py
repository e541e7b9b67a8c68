"""Build one system's environment."""

from pathlib import Path

from reperf.environments import build
from reperf.script import script
from reperf.systems import load_systems

with script(snakemake.log[0]):
    build(load_systems()[snakemake.wildcards.system], Path(snakemake.output[0]).parent)
