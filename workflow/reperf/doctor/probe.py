"""What runs on each node: it looks around, and prints one JSON object.

First of all it prints the time, so that the caller can compare the clocks. It needs nothing from
the work folder, which may be just what the node lacks.

    python -m reperf.doctor.probe '{"node": ..., ...}'
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from reperf.doctor.diagnosis import EnvironmentState, Probe, Request
from reperf.doctor.gpus import gpu_states
from reperf.doctor.hardware import fabric_ports, processor, space
from reperf.errors import ReperfError
from reperf.machine import describe_host
from reperf.systems import TRAINERS, load_systems
from reperf.systems.environments import python_of, read_environment

START_SECONDS = 120
"""How long a trainer may take to list its flags."""

_LIST = """
import json, platform
from importlib.metadata import distributions
packages = {found.metadata["Name"]: found.version for found in distributions()}
print(json.dumps([platform.python_version(), packages]))
"""


def main() -> None:
    """Answer the request on the command line."""
    print(time.time(), flush=True)
    print(look(Request.model_validate_json(sys.argv[1])).model_dump_json(), flush=True)


def look(request: Request) -> Probe:
    """See what this node is like."""
    # First, before the work below itself keeps the CPUs busy.
    cpus = processor()
    return Probe(
        host=describe_host(),
        shared_trouble=_meet(request),
        processor=cpus,
        space=space(request.folder),
        gpus=gpu_states(),
        fabric=fabric_ports(),
        environments={system: _environment(request.folder, system) for system in request.systems},
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


def _environment(folder: Path, name: str) -> EnvironmentState:
    """Start a system's trainer, and see what is really installed beside it."""
    system = load_systems()[name]
    environment = folder / system.environment
    if not environment.exists():
        return EnvironmentState(trouble=f"{environment}: not there")
    try:
        built = read_environment(environment)
        python = str(python_of(environment))
        found, packages = json.loads(_say([python, "-c", _LIST]))
        for program in system.programs:
            _say([python, str(program), "--help"])
    except ReperfError as error:
        return EnvironmentState(trouble=str(error))
    return EnvironmentState(
        trouble="", lock_sha256=built.lock_sha256, python=found, packages=packages
    )


def _say(command: list[str]) -> str:
    """What a command prints.

    Raises:
        ReperfError: it fails; the message ends with its last line.
    """
    try:
        answer = subprocess.run(
            command,
            check=False,
            env={**os.environ, "PYTHONPATH": str(TRAINERS.parent)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
    except OSError as error:
        raise ReperfError(f"{command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ReperfError(f"{command[1]}: no answer after {START_SECONDS} s") from None
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise ReperfError(f"{command[1]}: exit status {answer.returncode}: {last}")
    return answer.stdout


if __name__ == "__main__":
    main()
