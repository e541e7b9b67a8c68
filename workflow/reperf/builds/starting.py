"""How a build's Python is started, in an environment or in a container."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reperf.builds.build import Build, ImageBuild
from reperf.builds.built import read_built
from reperf.builds.engines import Box, Start, engine_called, readable_folders
from reperf.systems import TRAINERS

VISIBLE_GPUS = "{visible_gpus}"
"""What stands in a command for the value of CUDA_VISIBLE_DEVICES that its node sets."""
_TRAINERS_FIRST = """\
PYTHONPATH="$1${PYTHONPATH:+:$PYTHONPATH}"; export PYTHONPATH
if [ "$2" ]; then CUDA_VISIBLE_DEVICES=$2; export CUDA_VISIBLE_DEVICES; fi
shift 2; exec "$@"
"""


def start_in(
    build: Build,
    arguments: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    mounts: Iterable[Path] = (),
    gpus: str | None = None,
) -> Start:
    """How to start the Python of a build.

    Args:
        arguments: of Python; `{node_rank}` in them may stand for the number of a node.
        folder: the working folder, absolute.
        variables: environment variables to set.
        mounts: folders outside the working folder that the program reads.
        gpus: those that it uses, as CUDA_VISIBLE_DEVICES has them; empty: as the container has it;
            None: it uses none.

    Raises:
        ReperfError: the build is not made.
    """
    if not isinstance(build, ImageBuild):
        return Start([str(build.python), *arguments], variables)
    container, built = build.container, read_built(build)
    assert built.local_image
    box = Box(
        image=built.local_image,
        folder=folder,
        mounts=(*readable_folders(folder), *mounts),
        variables=variables_inside(variables),
        gpus=gpus is not None,
        name=f"reperf-{secrets.token_hex(6)}-{{node_rank}}",
        options=container.options,
    )
    command = inside([str(build.python), *arguments], gpus or "")
    return engine_called(container.engine).start(box, command)


def inside(command: Sequence[str], gpus: str = "") -> list[str]:
    """A command in a container: its Python finds the trainers, then what the image's own finds.

    An image's PYTHONPATH, where its framework may lie, is known in the container alone; and a Slurm
    job's GPUs are known on each node alone, where they differ if jobs share nodes.

    Args:
        gpus: those that it sees, as CUDA_VISIBLE_DEVICES has them; empty: as the container has it.
    """
    return ["sh", "-c", _TRAINERS_FIRST, "sh", str(TRAINERS.parent), gpus, *command]


def variables_inside(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of a command `inside`; it sees no others but the image's."""
    trainers = ("PYTHONPATH", str(TRAINERS.parent))
    return {
        # The user's own folder is not there, and often not even a name for the user's number.
        "HOME": "/tmp",
        "LOGNAME": "reperf",
        "PYTHONNOUSERSITE": "1",
        **{name: value for name, value in variables.items() if (name, value) != trainers},
    }
