"""What the rules that make builds call.

    python -m reperf.builds lock pytorch --log ...
    python -m reperf.builds image pytorch --container CONTAINER --cluster CLUSTER --log ...

The container and the cluster are JSON, as the report has them.
"""

import argparse
import shutil
from pathlib import Path

from reperf.building.script import script
from reperf.builds.build import ImageBuild, every_lock
from reperf.builds.engines import engine_called
from reperf.builds.image_build import build_image
from reperf.builds.lock_build import build_lock
from reperf.config import Cluster, Container
from reperf.systems import load_systems

_PULL_MINUTES = 60


def main() -> None:
    """Make one build."""
    parser = argparse.ArgumentParser(prog="python -m reperf.builds")
    parser.add_argument("kind", choices=("lock", "image"))
    parser.add_argument("name", help="of an environment, or the system of an image")
    parser.add_argument("--container", type=Container.model_validate_json)
    parser.add_argument("--cluster", type=_cluster, help="null without one")
    parser.add_argument("--log", required=True, type=Path)
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    with script(options.log):
        if options.kind == "lock":
            build_lock(every_lock()[options.name])
        else:
            build = ImageBuild(load_systems()[options.name], options.container)
            build_image(build, _where(options.container, options.cluster))


def _cluster(text: str) -> Cluster | None:
    return None if text == "null" else Cluster.model_validate_json(text)


def _where(container: Container, cluster: Cluster | None) -> list[str]:
    """The command that starts programs where the engine is: here, or on a node."""
    engine = engine_called(container.engine)
    if cluster is None or (engine.name != "pyxis" and shutil.which(engine.program)):
        return []
    chosen = {"partition": cluster.partition, "account": cluster.account}
    named = [f"--{key}={value}" for key, value in chosen.items() if value]
    return [
        *("srun", "--nodes=1", "--ntasks=1", f"--time={_PULL_MINUTES}", *named, *cluster.options),
    ]


if __name__ == "__main__":
    main()
