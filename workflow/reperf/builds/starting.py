"""How a build's Python is started, in an environment or in a container."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reperf.builds.build import Build, ImageBuild, read_built
from reperf.builds.engines import Box, Start, engine_called
from reperf.config import Container
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
    image = read_built(build).local_image
    assert image
    return start_image(
        build.container,
        image,
        [str(build.python), *arguments],
        folder=folder,
        variables=variables,
        mounts=mounts,
        gpus=gpus,
    )


def start_image(
    container: Container,
    image: str,
    command: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    mounts: Iterable[Path] = (),
    gpus: str | None = None,
) -> Start:
    """How to start a command in an image; see `start_in`.

    Args:
        image: as the engine is told of it.
    """
    trainers = TRAINERS.parent  # which the command reads, wherever they lie
    box = Box(
        image=image,
        folder=folder,
        mounts=(*([] if trainers.is_relative_to(folder) else [trainers]), *mounts),
        variables=variables_inside(variables),
        gpus=gpus is not None,
        name=f"reperf-{secrets.token_hex(6)}-{{node_rank}}",
        options=container.options,
    )
    return engine_called(container.engine).start(box, inside(command, gpus or ""))


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
