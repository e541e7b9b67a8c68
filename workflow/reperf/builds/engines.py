"""How a build's Python is started, in an environment or by a container engine in an image.

Inside, a command sees the image, the folders that it is given at their own paths, the machine's
network, shared memory and GPUs, and the variables that it is given: nothing else of the machine's
environment. What was tried with which version of an engine is in docs/containers.md.
"""

import os
import re
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reperf.builds import Build, Built, ImageBuild, SiteBuild, digest_of
from reperf.builds.site_python import words_of
from reperf.builds.steps import do
from reperf.config.site import EngineName
from reperf.errors import ReperfError
from reperf.systems import TRAINERS

VISIBLE_GPUS = "{visible_gpus}"
"""What stands in a command for the value of CUDA_VISIBLE_DEVICES that its node sets."""
_TRAINERS_FIRST = """\
PYTHONPATH="$1${PYTHONPATH:+:$PYTHONPATH}"; export PYTHONPATH
if [ "$2" ]; then CUDA_VISIBLE_DEVICES=$2; export CUDA_VISIBLE_DEVICES; fi
shift 2; exec "$@"
"""
# Podman and Docker leave a container behind if they are killed; so do they if they are asked to end
# and the container does not. `wait` returns early where a signal arrives, hence the loop.
_AND_REMOVE = """\
name=$1; engine=$2; shift 2
trap 'kill -TERM $child 2>/dev/null' TERM INT HUP
"$@" & child=$!
while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || break; done
"$engine" rm --force "$name" >/dev/null 2>&1
exit $code
"""


@dataclass(frozen=True)
class Box:
    """What a container shows to the command in it."""

    image: str  # as `pull` gave it
    folder: Path  # where the command starts; it may write there
    mounts: tuple[Path, ...] = ()  # further folders, which it may only read
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that are set, HOME among them."""
    gpus: bool = False  # whether it sees the machine's GPUs
    name: str = "reperf"
    """Of the container, for engines that name them; "{node_rank}" in it becomes the node's
    number."""
    options: tuple[str, ...] = ()  # the user's, for the engine


@dataclass(frozen=True)
class Start:
    """A command in a container, ready to be started."""

    command: list[str]  # the engine's, then the command itself
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the engine."""
    srun_options: tuple[str, ...] = ()  # for Slurm, where its plugin is the engine
    clean_up: tuple[str, ...] = ()
    """What removes the container after all of its processes were killed; may be empty."""


class ContainerEngine(ABC):
    """What runs images."""

    name: EngineName
    program: str

    @property
    def is_here(self) -> bool:
        """Whether this machine has it; a plugin of Slurm's is on nodes alone."""
        return shutil.which(self.program) is not None

    @abstractmethod
    def start(self, box: Box, command: Sequence[str]) -> Start:
        """How to run a command in a container."""

    @abstractmethod
    def pull(self, reference: str, folder: Path, run: Sequence[str] = ()) -> tuple[str, str]:
        """Get an image out of a registry: what to run, and its digest.

        Args:
            folder: for an engine that keeps images in files, which are named by absolute paths.
            run: the command that starts programs where the engine is.
        """

    def version(self, run: Sequence[str] = ()) -> str:
        """What the engine says of itself; a ReperfError says that it does not start."""
        command = [*run, self.program, "--version"]
        answer = do(command, f"{self.program}: does not start", os.environ)
        return next(iter(re.findall(r"\d+(?:\.\d+)+\S*", answer)), answer.strip()).rstrip(",")

    def _pulled(self, image: Path, command: Sequence[str], reference: str) -> tuple[str, str]:
        """What `pull` returns, once a command has pulled a reference into a file."""
        image.parent.mkdir(parents=True, exist_ok=True)
        image.unlink(missing_ok=True)
        do(command, f"{reference}: cannot be pulled", os.environ)
        return str(image), parse_reference(reference).digest or digest_of(image)


class Apptainer(ContainerEngine):
    """Apptainer, and Singularity where its command is called so, too."""

    name = "apptainer"
    program = "apptainer"

    def start(self, box: Box, command: Sequence[str]) -> Start:
        # Not --env, which takes a comma for the next variable.
        variables = {f"APPTAINERENV_{name}": value for name, value in box.variables.items()}
        # It takes HOME from nowhere else, and the user's own folder is not mounted then.
        home = variables.pop("APPTAINERENV_HOME")
        own = [self.program, "exec", "--cleanenv", f"--home={home}"]
        own += ["--nv"] if box.gpus else []
        own += [f"--bind={box.folder}", *(f"--bind={path}:{path}:ro" for path in box.mounts)]
        own += [f"--pwd={box.folder}", *box.options, box.image]
        return Start([*own, *command], variables)

    def pull(self, reference: str, folder: Path, run: Sequence[str] = ()) -> tuple[str, str]:
        image = (folder / "image.sif").absolute()
        source = f"docker://{parse_reference(reference).pullable}"
        pull = [*run, self.program, "pull", "--force", str(image), source]
        return self._pulled(image, pull, reference)


class Podman(ContainerEngine):
    """Podman; an unpacked folder is run under an overlay, so that it stays as it is."""

    name: EngineName = "podman"
    program = "podman"
    gpus = "--device=nvidia.com/gpu=all"
    # A label of SELinux would hide the working folder.
    further: tuple[str, ...] = ("--security-opt=label=disable",)

    def start(self, box: Box, command: Sequence[str]) -> Start:
        own = [self.program, "run", "--rm", f"--name={box.name}", "--network=host", "--ipc=host"]
        own += [f"--volume={box.folder}:{box.folder}"]
        own += [f"--volume={path}:{path}:ro" for path in box.mounts]
        # By name: the value comes from the engine's own environment.
        own += [f"--workdir={box.folder}", *(f"--env={name}" for name in box.variables)]
        # An image's own entry point may print, and wait for a GPU.
        own += ["--entrypoint=", *([self.gpus] if box.gpus else []), *self.further]
        own += box.options
        own += ["--rootfs", f"{box.image}:O"] if box.image.startswith("/") else [box.image]
        remove = [self.program, "rm", "--force", box.name]
        guarded = ["sh", "-c", _AND_REMOVE, "sh", box.name, self.program, *own, *command]
        return Start(guarded, box.variables, clean_up=tuple(remove))

    def pull(self, reference: str, folder: Path, run: Sequence[str] = ()) -> tuple[str, str]:
        named = parse_reference(reference)
        asked = named.pullable
        # What is there already is not pulled again: no registry has an image that was made here.
        there = f"{self.program} image inspect {asked} >/dev/null 2>&1"
        pull = f"{there} || {self.program} pull {asked}"
        do([*run, "sh", "-c", pull], f"{reference}: cannot be pulled", os.environ)
        template = "{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}"
        inspect = [*run, self.program, "image", "inspect", "--format", template, asked]
        by_digest = do(inspect, f"{reference}: its digest is not known", os.environ).strip()
        # By a digest no engine gives anything else, but it may list the image's others first.
        digest = named.digest or f"sha256:{by_digest.rpartition('sha256:')[2]}"
        return asked if named.digest else by_digest, digest


class Docker(Podman):
    """Docker, with its daemon."""

    name: EngineName = "docker"
    program = "docker"
    gpus = "--gpus=all"
    further = (f"--user={os.getuid()}:{os.getgid()}", "--ulimit=memlock=-1")


class Pyxis(ContainerEngine):
    """Slurm's plugin of NVIDIA, over Enroot: srun itself starts the container."""

    name = "pyxis"
    program = "srun"
    is_here = False

    def start(self, box: Box, command: Sequence[str]) -> Start:
        mounts = [f"{box.folder}:{box.folder}", *(f"{path}:{path}:ro" for path in box.mounts)]
        options = [
            f"--container-image={box.image}",
            f"--container-workdir={box.folder}",
            f"--container-mounts={','.join(mounts)}",
            "--no-container-mount-home",
            "--no-container-entrypoint",
            # Else the image's own values win.
            f"--container-env={','.join(box.variables)}",
        ]
        return Start(list(command), box.variables, (*options, *box.options))

    def pull(self, reference: str, folder: Path, run: Sequence[str] = ()) -> tuple[str, str]:
        if not run:
            raise ReperfError(f"{reference}: pyxis needs a cluster; allowed: another engine")
        image = (folder / "image.sqsh").absolute()
        asked = parse_reference(reference).for_enroot
        save = [f"--container-image={asked}", f"--container-save={image}", "true"]
        return self._pulled(image, [*run, *save], reference)


_ENGINES: dict[str, ContainerEngine] = {
    engine.name: engine for engine in (Apptainer(), Podman(), Docker(), Pyxis())
}


def engine_called(name: EngineName) -> ContainerEngine:
    """The engine of that name."""
    return _ENGINES[name]


def engine_here() -> EngineName | None:
    """The engine that this machine has, the preferred one of several; None if it has none."""
    return next((engine.name for engine in _ENGINES.values() if engine.is_here), None)


@dataclass(frozen=True)
class Reference:
    """Where a registry keeps an image."""

    repository: str
    tag: str | None
    digest: str | None

    @property
    def pullable(self) -> str:
        """Without the tag where there is a digest: engines take one of them."""
        last = f"@{self.digest}" if self.digest else f":{self.tag or 'latest'}"
        return self.repository + last

    @property
    def for_enroot(self) -> str:
        """As Enroot writes it: a # between the registry and the image."""
        registry, slash, rest = self.pullable.partition("/")
        named = slash and re.search(r"[.:]|^localhost$", registry)
        return f"{registry}#{rest}" if named else self.pullable


# What names an image.
REFERENCE = (
    "registry/image:tag, with @sha256:... or without, or the path of a file or folder that exists"
)


def parse_reference(text: str, place: str = "images") -> Reference:
    """Take `registry/image:tag@sha256:...` apart; anything else is refused, by its key."""
    match = re.fullmatch(
        r"(?:docker://)?(?P<repository>[a-z0-9][a-z0-9.-]*(?::\d+)?(?:[/#][\w.-]+)*)"
        r"(?::(?P<tag>[\w][\w.-]*))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
        text,
    )
    if match is None:
        raise ReperfError(f"{place}: got {text!r}; allowed: {REFERENCE}")
    return Reference(match["repository"].replace("#", "/"), match["tag"], match["digest"])


def start_in(
    build: Build,
    command: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    mounts: Iterable[Path] = (),
    gpus: str | None = None,
    image: str | None = None,
) -> Start:
    """How to start a command in a build.

    Args:
        command: the build's Python and its arguments; `{node_rank}` may stand for a node's number.
        folder: the working folder, absolute.
        mounts: folders outside the working folder that the command reads.
        gpus: those that it uses, as CUDA_VISIBLE_DEVICES has them; empty: as the container has it;
            None: it uses none.
        image: name or file by which the engine runs it; None: the one in the build's record.
    """
    if isinstance(build, SiteBuild):
        return Start(words_of(build.environment, command[1:], variables), variables)
    if not isinstance(build, ImageBuild):
        return Start([*command], variables)
    image = image or Built.read(build.folder).local_image
    assert image
    code = TRAINERS.parent  # which the command reads, wherever it lies
    box = Box(
        image=image,
        folder=folder,
        mounts=(*([] if code.is_relative_to(folder) else [code]), *mounts),
        variables=variables_inside(variables),
        gpus=gpus is not None,
        name=f"reperf-{secrets.token_hex(6)}-{{node_rank}}",
        options=build.container.options,
    )
    return engine_called(build.container.engine).start(box, inside(command, gpus or ""))


def inside(command: Sequence[str], gpus: str = "") -> list[str]:
    """A command in a container: its Python finds the trainers, then what the image's own finds.

    An image's PYTHONPATH, where its framework may lie, is known in the container alone; and a Slurm
    job's GPUs are known on each node alone, where they differ if jobs share nodes. Without `gpus`,
    they are as the container has them.
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
