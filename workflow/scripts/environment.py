"""Build the environment of a lock."""

from reperf.building.script import script
from reperf.builds import every_lock
from reperf.builds.lock_build import build_lock

with script(snakemake.log[0]):
    build_lock(every_lock()[snakemake.wildcards.name])
