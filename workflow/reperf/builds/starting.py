"""How a build's Python is started, in an environment or in a container."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reperf.builds.build import Build, ImageBuild
from reperf.builds.built import read_built
from reperf.builds.engines import Box, Start, engine_called, readable_folders
from reperf.systems import TRAINERS

_TRAINERS_FIRST = 'PYTHONPATH="$1${PYTHONPATH:+:$PYTHONPATH}"; export PYTHONPATH; shift; exec "$@"'


def start_in(
    build: Build,
    arguments: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    mounts: Iterable[Path] = (),
    gpus: bool = False,
) -> Start:
    """How to start the Python of a build.

    Args:
        arguments: of Python; `{node_rank}` in them may stand for the number of a node.
        folder: the working folder, absolute.
        variables: environment variables to set.
        mounts: folders outside the working folder that the program reads.
        gpus: whether it uses GPUs.

    Raises:
        ReperfError: the build is not made.
    """
    if not isinstance(build, ImageBuild):
        return Start([str(build.python), *arguments], variables)
    container = build.container
    box = Box(
        image=read_built(build).local_image,
        folder=folder,
        mounts=(*readable_folders(folder), *mounts),
        variables=variables_inside(variables),
        gpus=gpus,
        name=f"reperf-{secrets.token_hex(6)}-{{node_rank}}",
        options=container.options,
    )
    return engine_called(container.engine).start(box, inside([str(build.python), *arguments]))


def inside(command: Sequence[str]) -> list[str]:
    """A command in a container: its Python finds the trainers, then what the image's own finds.

    An image's PYTHONPATH, where its framework may lie, is known in the container alone.
    """
    return ["sh", "-c", _TRAINERS_FIRST, "sh", str(TRAINERS.parent), *command]


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
