"""What a build holds, as its own Python finds it."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import Field, ValidationError

from reperf.builds.steps import do
from reperf.errors import ReperfError
from reperf.host import Environment
from reperf.layout import ROOT
from reperf.systems import Device, System

LEAST_PYTHON = (3, 7)  # what trainers run on
_ASK = f"""\
import sys
print("%d.%d" % sys.version_info[:2])
sys.stdout.flush()
if sys.version_info >= {LEAST_PYTHON}:
    import runpy
    runpy.run_module("trainers.inside", run_name="__main__")
"""  # runs in an older Python, too


class Contents(Environment):
    """The answer of `python -m trainers.inside FRAMEWORK MODULES`: what a run records, and more."""

    machine: str = Field("", description="the processor's architecture, such as x86_64")
    libc: str = Field("", description="its name and version")
    compilers: dict[Device, str | None] = Field({})
    """what compiles for a device while a run trains; None: nothing"""
    import_trouble: str | None = Field(None, description="why the framework cannot be imported")
    modules_trouble: str | None = Field(None, description="likewise launchers and trainers")

    @property
    def lacks_driver(self) -> bool:
        """Whether it cannot be imported only because NVIDIA's driver is not here."""
        return bool(re.search(r"\blibcuda\.so|libnvidia-ml\.so", self.import_trouble or ""))


@dataclass(frozen=True)
class BuildPython:
    """The Python of a build, ready to be started.

    Attributes:
        start: the command that starts it.
        build: the build's folder or image, for messages.
        environment, time_limit: of its commands; left out, as `do` sets them.
    """

    start: Sequence[str]
    build: str
    environment: Mapping[str, str] | None = None
    time_limit: float | None = None

    def do(self, arguments: Sequence[str], trouble: str) -> str:
        return do([*self.start, *arguments], trouble, self.environment, self.time_limit)

    def answer(self, arguments: Sequence[str]) -> str:
        """The line that `trainers.inside` prints; a Python before 3.7 is refused."""
        printed = self.do(["-c", _ASK, *arguments], f"{self.build}: its Python does not start")
        lines = printed.strip().splitlines()
        last = lines[-1] if lines else ""
        if last.startswith("{"):
            return last
        numbers = re.fullmatch(r"(\d+)\.(\d+)", last)
        if numbers is None or tuple(map(int, numbers.groups())) < LEAST_PYTHON:
            raise ReperfError(
                f"{self.build}: its Python reports version {last[-200:]!r}; allowed: 3.7 or later"
            )
        raise ReperfError(f"{self.build}: its Python does not say what is there: got {last!r}")

    def contents(self, framework: str, modules: Iterable[str] = ()) -> Contents:
        """Ask what the build holds, how its framework was built, whether modules can be loaded."""
        answer = self.answer([framework, *modules])
        try:
            return Contents.model_validate_json(answer)
        except ValidationError:
            raise ReperfError(
                f"{self.build}: its Python does not say what is there: got {answer[-200:]!r}"
            ) from None

    def contents_with(self, framework: str, modules: Iterable[str] = ()) -> Contents:
        """The same of a build that somebody else made; refused unless its framework is there."""
        contents = self.contents(framework, modules)
        # A framework that needs a driver to be imported may not give its version, but is installed.
        if contents.framework is None and not contents.lacks_driver:
            trouble = contents.import_trouble or ""
            missing = re.search(rf"No module named '?{framework}\b", trouble)
            is_there = framework in contents.packages or not missing
            what = f"its {framework} cannot be imported" if is_there else f"has no {framework}"
            raise ReperfError(f"{self.build}: {what}: {trouble}")
        return contents

    def start_trainers(
        self, system: System, contents: Contents, workloads: Collection[str] | None = None
    ) -> None:
        """Start what trains a system's workloads by itself; left out, all of them.

        `contents` must be the answer to a question about the same system's `modules_of`. Where the
        framework needs a driver to be imported and this machine has none, the first run or
        `reperf doctor` is the first to do so.
        """
        if contents.lacks_driver:
            return
        workloads = system.workloads if workloads is None else workloads
        for path in filter(Path.exists, map(system.trainer, workloads)):
            trouble = f"{path.relative_to(ROOT)}: does not start in {self.build}"
            self.do([os.path.relpath(path), "--help"], trouble)
        if contents.modules_trouble:
            raise ReperfError(
                f"launcher or trainer: does not start in {self.build}: {contents.modules_trouble}"
            )


def modules_of(system: System, workloads: Collection[str] | None = None) -> list[str]:
    """The modules of a system's launcher and of what trains its workloads; left out, all of them.

    Paddle's launcher answers --help with an error, so they are imported.
    """
    workloads = system.workloads if workloads is None else workloads
    modules = [word for before, word in pairwise(system.launch) if before == "-m"]
    modules += [module for name in workloads for module in system.modules(name)]
    return list(dict.fromkeys(modules))
