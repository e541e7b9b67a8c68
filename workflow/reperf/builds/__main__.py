"""What the rules that make builds call.

python -m reperf.builds lock pytorch-1a2b3c4d --log ...
python -m reperf.builds image .images/pytorch-1a2b3c4d/plan.json --log ...
"""

import argparse
import shutil
from pathlib import Path

from reperf.building.script import script
from reperf.builds.build import every_lock
from reperf.builds.engines import engine_called
from reperf.builds.image_build import build_image
from reperf.builds.lock_build import build_lock
from reperf.errors import one_line_errors
from reperf.plans.image_plan import ImagePlan

_PULL_MINUTES = 60


def main() -> None:
    """Make one build."""
    parser = argparse.ArgumentParser(prog="python -m reperf.builds")
    parser.add_argument("kind", choices=("lock", "image"))
    parser.add_argument("what", help="name of an environment, or the plan of an image")
    parser.add_argument("--log", type=Path, help="for messages; left out: standard error")
    options = parser.parse_args()
    with one_line_errors(), script(options.log):
        if options.kind == "lock":
            build_lock(every_lock()[options.what])
        else:
            plan = ImagePlan.read(Path(options.what))
            build_image(plan.build, _where(plan))


def _where(plan: ImagePlan) -> list[str]:
    """The command that starts programs where the engine is: here, or on a node."""
    engine, cluster = engine_called(plan.container.engine), plan.cluster
    if cluster is None or (engine.name != "pyxis" and shutil.which(engine.program)):
        return []
    chosen = {"partition": cluster.partition, "account": cluster.account}
    named = [f"--{key}={value}" for key, value in chosen.items() if value]
    return [
        *("srun", "--nodes=1", "--ntasks=1", f"--time={_PULL_MINUTES}", *named, *cluster.options),
    ]


if __name__ == "__main__":
    main()
