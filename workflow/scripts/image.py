"""Get the image of a system, and what it lacks."""

from pathlib import Path

from reperf.building.script import script
from reperf.builds.engines import engine_called
from reperf.builds.image_build import build_image
from reperf.layout import PLAN
from reperf.plans.plan_files import MadePlan

PULL_MINUTES = 60


def start_of_engine(plan: MadePlan) -> list[str]:
    """The command that starts programs where the engine is: here, or on a node."""
    engine, cluster = engine_called(plan.container.engine), plan.cluster
    if cluster is None or engine.is_here:
        return []
    chosen = {"partition": cluster.partition, "account": cluster.account}
    named = [f"--{key}={value}" for key, value in chosen.items() if value]
    return ["srun", "--nodes=1", "--ntasks=1", f"--time={PULL_MINUTES}", *named, *cluster.options]


with script(snakemake.log[0]):
    image = MadePlan.read(Path(snakemake.output[0]).with_name(PLAN))
    build_image(image.build, start_of_engine(image))
