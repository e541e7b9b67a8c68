"""What runs on each node: it looks around, and prints one JSON object.

First of all it prints the time, so that the caller can compare the clocks. It needs nothing from
the work folder, which may be just what the node lacks.

    python -m reperf.doctor.probe '{"node": ..., ...}'
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pydantic import Field

from reperf.builds import Built, SiteBuild, build_of, why_build, why_not_as_found
from reperf.builds.engines import start_in
from reperf.builds.fitness import why_unfit
from reperf.builds.inside import BuildPython, modules_of
from reperf.builds.site_python import variables_outside
from reperf.config import Run
from reperf.doctor import hardware
from reperf.errors import ReperfError
from reperf.machine import cores, describe_host
from reperf.records.diagnosis import EnvironmentState, Probe
from reperf.systems import TRAINERS, load_systems
from reperf.validation import Model

START_SECONDS = 120  # how long a trainer may take to list its flags


class Request(Model):
    """What a probe is asked."""

    node: str = Field(description="the node's name, as the caller knows it")
    folder: Path = Field(description="the work folder, absolute")
    meeting: Path = Field(description="folder in the work folder where the nodes leave notes")
    secret: str = Field(description="what the caller's note in that folder says")
    runs: tuple[Run, ...] = Field(description="one for each build to try; all are made")
    folders: dict[str, Path] = Field({})
    """a build of an existing environment -> where its record is"""


def main() -> None:
    """Answer the request on the command line."""
    print(time.time(), flush=True)
    print(look(Request.model_validate_json(sys.argv[1])).model_dump_json(), flush=True)


def look(request: Request) -> Probe:
    """See what this node is like."""
    # First, before the work below itself keeps the CPUs busy.
    readings = hardware.readings() | hardware.gpu_readings()
    with ThreadPoolExecutor(cores() + 1) as pool:
        host = pool.submit(describe_host)  # nvidia-smi takes a second
        states = [*pool.map(partial(_environment, request), request.runs)]
    return Probe(
        host=host.result(),
        shared_trouble=_meet(request),
        disk_free=hardware.disk_free(request.folder),
        ports=hardware.active_ports(),
        settings=hardware.settings(),
        readings=readings,
        environments={
            build_of(run).id: state for run, state in zip(request.runs, states, strict=True)
        },
    )


def _meet(request: Request) -> str:
    """Read the caller's note in the work folder and leave one; return what went wrong, or ""."""
    meeting = request.folder / request.meeting
    try:
        if (meeting / "caller").read_text(encoding="utf-8") != request.secret:
            return f"{request.folder} is another folder here"
        (meeting / request.node).write_text(request.secret, encoding="utf-8")
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def _environment(request: Request, run: Run) -> EnvironmentState:
    """Start a run's trainer in its build, and see what is really there."""
    build, system = build_of(run), load_systems()[run.system]
    gpus = run.device == "cuda"
    try:
        os.chdir(request.folder)  # builds lie in the work folder
        made_in = request.folders.get(build.id) or build.folder
        if not made_in.exists():
            return EnvironmentState(trouble=f"{made_in.absolute()}: not there")
        if isinstance(build, SiteBuild):
            why = why_not_as_found(Built.read(made_in), build.listed)
        else:
            why = why_build(build)
        if why:
            return EnvironmentState(trouble=why)
        variables = {"PYTHONPATH": str(TRAINERS.parent)}
        # With its GPUs: some frameworks cannot be imported without a driver.
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "") if gpus else None
        start = start_in(
            build, [str(build.python)], folder=Path.cwd(), variables=variables, gpus=visible
        )
        outside = {**os.environ, **start.variables}
        if isinstance(build, SiteBuild):
            outside = variables_outside(build.environment, os.environ, start.variables)
        words = [word.replace("{node_rank}", "0") for word in start.command]
        python = BuildPython(words, str(build.folder), outside, START_SECONDS)
        contents = python.contents(system.framework, modules_of(system, [run.workload]))
        if contents.lacks_driver:
            return EnvironmentState(trouble=contents.import_trouble or "")
        python.start_trainers(system, contents, [run.workload])
    except (ReperfError, OSError) as error:
        return EnvironmentState(trouble=str(error))
    return EnvironmentState(
        trouble="",
        recipe_sha256=build.recipe_digest,
        python=contents.python,
        framework=f"{system.framework} {contents.framework}",
        packages=contents.packages,
        compilers=contents.compilers,
        unfit=why_unfit(build, [describe_host()]) if gpus else None,
    )


if __name__ == "__main__":
    main()
