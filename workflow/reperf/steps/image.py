"""Get the image of a system, and what it lacks."""

from reperf.builds.engines import engine_called
from reperf.builds.image_build import build_image
from reperf.layout import PLAN
from reperf.plans.image_plan import ImagePlan

_PULL_MINUTES = 60


def run(name: str) -> None:
    plan = ImagePlan.read(f".images/{name}/{PLAN}")
    build_image(plan.build, _where(plan))


def _where(plan: ImagePlan) -> list[str]:
    """The command that starts programs where the engine is: here, or on a node."""
    engine, cluster = engine_called(plan.container.engine), plan.cluster
    if cluster is None or engine.is_here:
        return []
    chosen = {"partition": cluster.partition, "account": cluster.account}
    named = [f"--{key}={value}" for key, value in chosen.items() if value]
    return ["srun", "--nodes=1", "--ntasks=1", f"--time={_PULL_MINUTES}", *named, *cluster.options]
