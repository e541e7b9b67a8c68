"""The Python of an existing environment: how it is started, and what it lists.

If there are modules or a line of bash, bash runs them and then becomes the Python.
"""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import Field, ValidationError

from reperf.builds.inside import BuildPython
from reperf.config.site import SiteEnvironment
from reperf.errors import ReperfError
from reperf.systems import TRAINERS, System
from reperf.validation import Described

LOOK_SECONDS = 120  # how long modules, and a Python that lists its packages, may take
_LOAD = (
    'type module >/dev/null 2>&1 || . "${MODULESHOME:-/usr/share/modules}/init/bash" 2>/dev/null '
    "|| . /etc/profile; module load "
)
_OR_END = 'status=$?; [ $status = 0 ] || { echo "ended with status $status: "%s >&2; exit 1; }'
_FIND = (
    "python=$(command -v python || command -v python3) "
    "|| { echo 'neither python nor python3 is on the PATH' >&2; exit 1; }"
)


class Listed(Described):
    """The answer of `python -m trainers.inside FRAMEWORK --listed`."""

    node: str
    python: str
    executable: str
    packages: dict[str, str] = Field(description="name -> version")
    is_there: bool = Field(description="whether the framework is installed")
    variables: dict[str, str] = Field(description="all that are set, also by modules")

    @property
    def digest(self) -> str:
        """The SHA-256 of the Python's version and of all packages with theirs."""
        lines = [f"{name} {version}\n" for name, version in sorted(self.contents.items())]
        return sha256("".join(lines).encode()).hexdigest()

    @property
    def contents(self) -> dict[str, str]:
        """What is compared: the packages and the Python, name -> version."""
        return {**self.packages, "Python": self.python}


def interpreter_of(environment: SiteEnvironment) -> Path | None:
    """The path of an environment's Python; None if modules or a line put it on the PATH.

    Refused if the path does not exist, or its folder has no Python.
    """
    if environment.python is None:
        return None
    place = Path.cwd() / environment.python
    found = [place] if not place.is_dir() else [place / "bin/python", place / "bin/python3"]
    python = next((path for path in found if path.is_file()), None)
    if python is None:
        what = f"no Python in its bin/, {place}" if place.is_dir() else f"not there: {place}"
        raise ReperfError(
            f"environment {environment}: {what}; allowed: a Python, or a folder with bin/python, "
            "as venv and conda make it, on this machine and on every node"
        )
    return python


def words_of(
    environment: SiteEnvironment, arguments: Sequence[str], variables: Mapping[str, str]
) -> list[str]:
    """The command that starts an environment's Python; `variables` override what modules set."""
    python = interpreter_of(environment)
    if python and not environment.has_shell:
        return [str(python), *arguments]
    script = []
    if modules := shlex.join(environment.modules):
        script += [_LOAD + modules, _OR_END % shlex.quote(f"module load {modules}")]
    if line := environment.before:
        script += [line, _OR_END % shlex.quote(line)]
    script += [f"python={shlex.quote(str(python))}" if python else _FIND]
    for name, value in variables.items():
        # Modules may have a PYTHONPATH of their own, on which the framework lies.
        after = '"${PYTHONPATH:+:$PYTHONPATH}"' if name == "PYTHONPATH" else ""
        script.append(f"export {name}={shlex.quote(value)}{after}")
    return ["bash", "-c", "\n".join([*script, 'exec "$python" "$@"']), "bash", *arguments]


def variables_outside(
    environment: SiteEnvironment, outside: Mapping[str, str], variables: Mapping[str, str]
) -> dict[str, str]:
    """The environment variables for starting that command, `variables` over those `outside`."""
    given = {**outside, **variables}
    if not environment.has_shell:
        return given
    # What the user has loaded stays; reperf's own Python must not come first.
    own = str(Path(sys.prefix, "bin")) if sys.prefix != sys.base_prefix else ""
    parts = given.get("PATH", os.defpath).split(os.pathsep)
    given["PATH"] = os.pathsep.join(part for part in parts if part != own)
    before = {"PYTHONPATH": outside["PYTHONPATH"]} if "PYTHONPATH" in outside else {}
    return {
        name: given[name] for name in given if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    } | before


def python_of(environment: SiteEnvironment) -> BuildPython:
    """An environment's Python, here."""
    variables = {"PYTHONPATH": str(TRAINERS.parent)}
    return BuildPython(
        words_of(environment, (), variables),
        f"environment {environment}",
        variables_outside(environment, os.environ, variables),
        LOOK_SECONDS,
    )


def look(environment: SiteEnvironment, system: System) -> Listed:
    """See what is in an environment on this machine, now; refused if it lacks the framework."""
    listed = read_listed(python_of(environment).answer([system.framework, "--listed"]))
    if not listed.is_there:
        raise ReperfError(
            f"environment {environment}: has no {system.framework}, the framework of "
            f"{system.title}, for its Python {listed.python}, {listed.executable}; allowed: an "
            "environment that has it"
        )
    return listed


def words_of_look(environment: SiteEnvironment, system: System) -> list[str]:
    """The command that prints one line on another node, as `read_listed` takes it."""
    variables = {"PYTHONPATH": str(TRAINERS.parent)}
    arguments = ["-m", "trainers.inside", system.framework, "--listed"]
    return words_of(environment, arguments, variables)


def read_listed(answer: str) -> Listed:
    """Read what a Python printed; anything but such a list is refused."""
    try:
        return Listed.model_validate_json(answer)
    except ValidationError:
        raise ReperfError(f"not a list of packages: got {answer[-200:]!r}") from None
