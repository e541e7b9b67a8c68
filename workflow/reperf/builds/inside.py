"""What a build holds, as its own Python finds it."""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError

from reperf.builds.steps import do
from reperf.errors import ReperfError
from reperf.systems import ROOT, Device, System

LEAST_PYTHON = (3, 7)
"""What trainers run on."""


class Framework(BaseModel, frozen=True):
    """How the framework was built."""

    name: str
    version: str | None = Field(None, description="None: it is not there")
    cuda: str | None = None
    nccl: str | None = None
    architectures: tuple[str, ...] = ()
    import_trouble: str | None = Field(None, description="why it cannot be imported")

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing of that name to import."""
        return bool(re.search(rf"No module named '?{self.name}\b", self.import_trouble or ""))

    @property
    def lacks_driver(self) -> bool:
        """Whether it cannot be imported only because NVIDIA's driver is not here."""
        return bool(re.search(r"\blibcuda\.so|libnvidia-ml\.so", self.import_trouble or ""))


class Contents(BaseModel, frozen=True):
    """The answer of `python -m trainers.inside FRAMEWORK`, see there."""

    python: str
    os: str | None
    machine: str
    libc: str
    packages: dict[str, str]
    overlay: dict[str, str]
    compilers: dict[Device, str | None] = {}
    framework: Framework

    @classmethod
    def of(
        cls,
        start: Sequence[str],
        framework: str,
        place: str,
        environment: Mapping[str, str] | None = None,
        time_limit: float | None = None,
    ) -> Self:
        """Ask a Python.

        Args:
            start: the command that starts it.
            place: which Python that is, for messages.
            environment, time_limit: of that command; left out, as `do` sets them.

        Raises:
            ReperfError: it does not start, or is too old.
        """
        trouble = f"{place} does not start"
        said = do(
            [*start, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            trouble=trouble,
            environment=environment,
            time_limit=time_limit,
        )
        version = re.search(r"(\d+)\.(\d+)\s*$", said)
        if version is None:
            raise ReperfError(
                f"{place} does not say its version: got {said[-200:].strip()!r}; "
                "allowed: Python 3.7 or later"
            )
        if (int(version[1]), int(version[2])) < LEAST_PYTHON:
            raise ReperfError(f"{place} is {version[0].strip()}; allowed: 3.7 or later")
        answer = do([*start, "-m", "trainers.inside", framework], trouble, environment, time_limit)
        try:
            return cls.model_validate(json.loads(answer.splitlines()[-1]))
        except (ValueError, LookupError, ValidationError):
            raise ReperfError(
                f"{place} does not say what is there: got {answer[-200:]!r}"
            ) from None

    def for_record(self) -> dict[str, Any]:
        """The fields of reperf.records.run_record.Environment."""
        return {
            "python": self.python,
            "packages": self.packages,
            "overlay": self.overlay,
            "system": self.os,
            "framework": self.framework.version,
            "cuda": self.framework.cuda,
            "nccl": self.framework.nccl,
            "architectures": self.framework.architectures,
        }


def start_trainers(
    start: Sequence[str],
    system: System,
    contents: Contents,
    *,
    place: str,
    workloads: Collection[str] | None = None,
    environment: Mapping[str, str] | None = None,
    time_limit: float | None = None,
) -> None:
    """Import a system's launcher and what trains its workloads, if this machine allows it.

    Where the framework needs a driver to be imported and this machine has none, the first run
    or `reperf doctor` is the first to do so.

    Args:
        workloads: left out, all of the system's.

    Raises:
        ReperfError: the framework or the launcher cannot be imported, or a program does not start.
    """
    if contents.framework.lacks_driver:
        return
    workloads = system.workloads if workloads is None else workloads
    programs = [path for path in map(system.trainer, workloads) if path.exists()]
    started = {str(one.relative_to(ROOT)): [os.path.relpath(one), "--help"] for one in programs}
    # Not with --help, to which Paddle's launcher answers with an error; and not the work folder's.
    modules = {word: word for before, word in pairwise(system.launch) if before == "-m"}
    modules |= {name: ", ".join(system.modules(name)) for name in workloads}
    for what, names in modules.items():
        if names:
            started[what] = ["-c", f"import sys; del sys.path[0]; import {names}"]
    for what, arguments in started.items():
        do(
            [*start, *arguments],
            trouble=f"{what}: does not start in {place}",
            environment=environment,
            time_limit=time_limit,
        )
