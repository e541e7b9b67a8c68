"""How a launcher is started: in its system's environment, or in a container of its image."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from reperf.builds import ImageBuild, build_of
from reperf.builds.built import why_build
from reperf.builds.starting import VISIBLE_GPUS, start_in, variables_inside
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.plans.run_plan import RunPlan
from reperf.systems import MODULE_STARTER, TRAINERS
from reperf.training.launch import Outcome, launch
from reperf.training.places import Place

# What srun itself needs; the image must see no more of this machine's environment.
_OF_SRUN = ("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER")
# float32 is float32, not TF32, also what mixed precision leaves in it, unless TF32 is asked for.
# NVIDIA's libraries read the first when they are loaded: with 0 they never compute in TF32,
# whatever a program asks of them. The second undoes what NVIDIA's image of PyTorch sets.
_TF32_VARIABLES = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
_SECONDS_TO_REMOVE = 20.0
"""How long an engine may take to end and remove a container."""


@dataclass(frozen=True)
class Start:
    """A launcher's command, ready to be started on all nodes.

    Attributes:
        command: the whole of it.
        environment: all of its environment variables.
        variables: those that are set for the run, as its record holds them.
        clean_up: what removes a container after all processes here were killed; may be empty.
        seconds_to_end: how long it needs, after SIGTERM, to end all that it has started.
    """

    command: list[str]
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    clean_up: tuple[str, ...] = field(default=())
    seconds_to_end: float = 0.0

    def launched(self, place: Place, run: Run, *, log: Path, time_limit: float) -> Outcome:
        """Start the launcher, wait for its end or end it, and leave no container; see `launch`."""
        try:
            return launch(
                self.command,
                log=log,
                time_limit=time_limit,
                world_size=run.world_size,
                environment=self.environment,
                lines=place.lines,
                seconds_to_end=self.seconds_to_end,
            )
        finally:
            self._remove_container()

    def _remove_container(self) -> None:
        """Remove what is left of a container on this machine, if the engine leaves any."""
        with suppress(OSError, subprocess.TimeoutExpired):
            if self.clean_up:
                subprocess.run(
                    self.clean_up,
                    check=False,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_SECONDS_TO_REMOVE,
                )


def start_of(plan: RunPlan, place: Place, program: Sequence[str]) -> Start:
    """How a run's launcher starts a program.

    Args:
        program: what the framework's launcher starts once for each rank, with its flags.

    Raises:
        ReperfError: the run's build is not made, or its image is another one than it was.
    """
    run = plan.run
    build = build_of(run)
    inside = isinstance(build, ImageBuild)
    if inside and (why := why_build(build)):
        raise ReperfError(f"{why}; the same call again gets it")
    variables = {"PYTHONPATH": str(TRAINERS.parent), **plan.variables, **place.variables}
    if run.device == "cuda":
        variables |= dict.fromkeys(_TF32_VARIABLES, "1" if run.precision == "tf32" else "0")
    start = start_in(
        build,
        [*launcher(plan, place), *program],
        folder=Path.cwd(),
        variables=variables,
        mounts=_data_outside(run),
        gpus=VISIBLE_GPUS if run.device == "cuda" else None,
    )
    outside = place.environment
    if start.srun_options:
        outside = {
            name: value
            for name, value in outside.items()
            if name in _OF_SRUN or name.startswith("SLURM_")
        }
    environment = {**outside, **start.variables}
    if not inside:
        environment["PATH"] = _path_into(build.python.parent)
    removed = _SECONDS_TO_REMOVE if start.clean_up else 0.0
    return Start(
        place.start(start.command, start.srun_options),
        environment,
        variables_inside(variables) if inside else variables,
        # Other nodes remove their own.
        clean_up=tuple(word.replace("{node_rank}", "0") for word in start.clean_up),
        seconds_to_end=max(place.seconds_to_end, removed),
    )


def launcher(plan: RunPlan, place: Place) -> list[str]:
    """What the build's Python is told to start the framework's launcher on one node."""
    run = plan.run
    places = {
        "nodes": run.nodes,
        "node_rank": "{node_rank}",
        "devices_per_node": run.devices_per_node,
        "world_size": run.world_size,
        "hosts": ",".join((place.head, *place.nodes[1:])),
        "head": place.head,
        "port": place.port,
    }
    words = [part.format(**places) for part in plan.launch]
    if "-m" not in words:
        return words
    at = words.index("-m")
    return [*words[:at], os.path.relpath(MODULE_STARTER), *words[at + 1 :]]


def _path_into(programs: Path) -> str:
    """The PATH of a launch: the programs of the system's environment, then all others."""
    others = os.environ.get("PATH", os.defpath)
    return f"{programs.absolute()}{os.pathsep}{others}"


def _data_outside(run: Run) -> tuple[Path, ...]:
    """The folder that a run reads, where the working folder only links to it or lacks it."""
    if run.data is None:
        return ()
    named, real = Path(run.data).absolute(), Path(run.data).resolve()
    here = Path.cwd()
    return tuple(path for path in dict.fromkeys((named, real)) if not path.is_relative_to(here))
