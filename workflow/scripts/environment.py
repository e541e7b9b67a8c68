"""Build the environment of a lock, or look into an existing environment."""

from pathlib import Path

from reperf.building.script import script
from reperf.builds import LockBuild, every_lock
from reperf.builds.environment_build import build_lock, build_site
from reperf.layout import PLAN
from reperf.plans.plan_files import MadePlan

with script(snakemake.log[0]):
    folder = Path(snakemake.output[0]).parent
    known = every_lock().get(folder.name)
    build = known or MadePlan.read(folder / PLAN).build
    if isinstance(build, LockBuild):
        build_lock(build)
    else:
        build_site(build, folder)
