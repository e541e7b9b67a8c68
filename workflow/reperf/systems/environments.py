"""Each system's environment: built from its lock, and what was really installed into it.

An environment is a folder with a Python of its own and, written last, environment.json: once that
file is there, the packages are in place and the trainer has started with them once. Its programs
name the folder and the Python that it was built with, so it can be neither moved nor copied.
Rebuilding is quick, because uv links packages from its cache.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import Field, ValidationError
from uv import find_uv_bin

from reperf.building.script import script
from reperf.errors import ReperfError
from reperf.files import sha256, whole_file
from reperf.programs import answer_of
from reperf.systems import ROOT, TRAINERS, System, load_systems
from reperf.training.record import Environment

RECORD = "environment.json"
"""The file that is written last."""

_EXACT = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.!+-]*\w")
_TAIL_LINES = 6


class BuiltEnvironment(Environment):
    """environment.json: what runs record of an environment, and what it was built from."""

    recipe_sha256: str | None = Field(None, description="of all that it was made from")
    built_in: str | None = Field(None, description="the folder that its programs name")


def build(system: System, folder: Path) -> None:
    """Build a system's environment from scratch.

    The system's packages and all that they need are installed in the versions that the lock
    names. The lock only constrains: what a platform does not need, such as CUDA's libraries beside
    a CPU build of torch, is not installed. uv.toml in the system's folder says how to build a
    package that uv has to compile; uv keeps it for the next time.

    Args:
        system: provides the lock, the packages and the Python.
        folder: becomes the environment; what it held before is removed.

    Raises:
        ReperfError: something cannot be found, installed or imported; the message says what, and
            ends with uv's or the program's last lines.
    """
    lock = system.lock.relative_to(ROOT)
    # Launchers name their interpreter by its path, which must outlive a link to the folder.
    home = folder.resolve()
    python = str(python_of(home))
    uv = find_uv_bin()
    _do(
        [uv, "venv", "--clear", "--force", "--no-project", "--python", system.python, str(home)],
        trouble=f"{folder}: Python {system.python} is neither installed nor can it be fetched",
    )
    # Compiled once, here, rather than by every rank of every run where no bytecode is kept.
    install = [uv, "pip", "install", "--compile-bytecode", "--python", python]
    install += _settings_of(system)
    _do([*install, *system.packages], trouble=f"{lock}: cannot be installed")
    packages = _do(
        [uv, "pip", "list", "--python", python, "--format", "json"],
        trouble=f"{folder}: its packages cannot be listed",
    )
    version = _do(
        [python, "-c", "import platform; print(platform.python_version())"],
        trouble=f"{folder}: its Python does not start",
    )
    for program in system.programs:
        trouble = f"{program.relative_to(ROOT)}: does not start in {folder}"
        _do([python, str(program), "--help"], trouble=trouble)
    record = BuiltEnvironment(
        recipe_sha256=system.recipe_digest,
        built_in=str(home),
        lock=str(lock),
        lock_sha256=sha256(system.lock),
        python=version.strip(),
        packages={package["name"]: package["version"] for package in json.loads(packages)},
    )
    with whole_file(folder / RECORD) as stream:
        stream.write(record.model_dump_json(indent=2) + "\n")


def read_environment(folder: Path) -> Environment:
    """What an environment holds, as runs record it.

    Raises:
        ReperfError: the environment is not built, or not completely.
    """
    return Environment(**_read(folder).model_dump(include=set(Environment.model_fields)))


def is_current(system: System, folder: Path) -> bool:
    """Whether an environment can be used, and was built from the system's present recipe."""
    return not why_build(system, folder)


def why_build(system: System, folder: Path) -> str:
    """Why an environment must be built before runs can use it, in one line; "" if it need not."""
    try:
        built = _read(folder)
    except ReperfError as error:
        return str(error)
    if built.built_in not in (None, str(folder.resolve())):
        return f"{folder}: was built in {built.built_in}, and was moved or copied"
    if not python_of(folder).exists():
        return f"{folder}: its Python {python_of(folder).resolve()} is gone"
    # Environments from before reperf recorded recipes name only their lock.
    same_recipe = built.recipe_sha256 in (None, system.recipe_digest)
    if built.lock_sha256 != sha256(system.lock) or not same_recipe:
        return f"{folder}: was built from another recipe than today's"
    return ""


def _read(folder: Path) -> BuiltEnvironment:
    path = folder / RECORD
    try:
        return BuiltEnvironment.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        raise ReperfError(f"{folder}: not built; snakemake {path} builds it") from None


def python_of(folder: Path) -> Path:
    """The interpreter of an environment; its launchers lie beside it."""
    return folder / "bin" / "python"


def _settings_of(system: System) -> list[str]:
    """uv's options for a system: the lock fixes what is installed and what compiles packages."""
    lock, *settings = map(str, system.recipe)
    options = ["--constraint", lock, "--build-constraint", lock]
    return options + [part for path in settings for part in ("--config-file", path)]


def _do(command: Sequence[str], trouble: str) -> str:
    """Run a command and return its output; its messages go to this process's standard error.

    Raises:
        ReperfError: it failed; the message is `trouble`, the package at fault if one is named, and
            the last lines.
    """
    answer = subprocess.run(
        command,
        check=False,
        env={**os.environ, "PYTHONPATH": str(TRAINERS.parent), **_uv_settings()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    sys.stderr.write(answer.stderr)
    if answer.returncode == 0:
        return answer.stdout
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    package = next((found[0] for line in lines if (found := _EXACT.search(line))), None)
    tail = " | ".join(line.strip() for line in lines[-_TAIL_LINES:])
    raise ReperfError(f"{trouble}{f' ({package})' if package else ''}: {tail}")


@cache
def _uv_settings() -> dict[str, str]:
    """What uv must be told about this machine, because it does not look where pip does."""
    settings = {}
    if links := _find_links_of_pip():
        settings["UV_FIND_LINKS"] = ",".join(links)
    # pyenv's commands work only for the chosen versions, and uv stops at one that does not.
    if versions := answer_of(["pyenv", "versions", "--bare"]):
        settings["PYENV_VERSION"] = ":".join(versions.split())
    return settings


def _find_links_of_pip() -> list[str]:
    """Where uv is set to look for wheels, and where pip is."""
    settings = answer_of([sys.executable, "-m", "pip", "config", "list"]) or ""
    links = os.environ.get("UV_FIND_LINKS", "").split(",")
    for line in settings.splitlines():
        key, _, value = line.partition("=")
        if key.endswith(".find-links"):
            links += ast.literal_eval(value).split()
    return list(dict.fromkeys(filter(None, links)))


def main() -> None:
    """Build one system's environment; the rule calls this."""
    parser = argparse.ArgumentParser(prog="python -m reperf.systems.environments")
    parser.add_argument("system", choices=load_systems())
    parser.add_argument("--log", required=True, type=Path)
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    system = load_systems()[options.system]
    with script(options.log):
        build(system, system.environment)


if __name__ == "__main__":
    main()
