"""The steps of making a build: commands that must succeed, and what to say if one does not."""

import ast
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from subprocess import TimeoutExpired

from reperf.errors import ReperfError
from reperf.programs import answer_of, ended
from reperf.systems import TRAINERS

_EXACT = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.!+-]*\w")
_TAIL_LINES = 6
LOCK_SECONDS = "3600"  # how long a build waits for another one that holds uv's lock


def do(
    command: Sequence[str],
    trouble: str,
    environment: Mapping[str, str] | None = None,
    time_limit: float | None = None,
) -> str:
    """Run a command and return its output.

    Its messages go to this process's standard error, which is the log of a build. Those of a
    command with a time limit do not: it only looks, and modules may print greetings when loaded.

    Args:
        trouble: begins the ReperfError if it fails, before the package at fault and the last lines.
        environment: its environment variables; left out, those that uv and a trainer need here.
        time_limit: seconds; left out, as long as it takes.
    """
    if environment is None:
        environment = {**os.environ, "PYTHONPATH": str(TRAINERS.parent), **uv_settings()}
    try:
        answer = ended(command, environment, time_limit)
    except OSError as error:
        raise ReperfError(f"{trouble}: {command[0]}: {error.strerror}") from None
    except TimeoutExpired:
        raise ReperfError(f"{trouble}: no answer after {time_limit:g} s") from None
    if time_limit is None:
        sys.stderr.write(answer.stderr)
    if answer.returncode == 0:
        return answer.stdout
    lines = (answer.stdout + answer.stderr).strip().splitlines() or [f"exit {answer.returncode}"]
    package = next((match[0] for line in lines if (match := _EXACT.search(line))), None)
    tail = " | ".join(line.strip() for line in lines[-_TAIL_LINES:])
    raise ReperfError(f"{trouble}{f' ({package})' if package else ''}: {tail}")


@cache
def uv_settings(links_of_pip: bool = True) -> dict[str, str]:
    """What uv must be told about this machine, because it does not look where pip does."""
    # Builds share uv's lock, and one of Horovod holds it for longer than uv's 300 s.
    settings = {"UV_LOCK_TIMEOUT": os.environ.get("UV_LOCK_TIMEOUT", LOCK_SECONDS)}
    if links_of_pip and (links := _find_links_of_pip()):
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
