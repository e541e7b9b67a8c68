"""The systems under test, one folder each.

The system.yaml in its folder under workflow/systems/ describes a system, and it trains the
workloads for which the folder holds a program. No rule and no library module names a system.
"""

import hashlib
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from reperf.building.code import closure
from reperf.faults import checked
from reperf.files import sha256
from reperf.systems.workloads import load_workloads
from reperf.written import read_written

Device = Literal["cpu", "cuda"]
Precision = Literal["fp32", "amp"]
Input = Literal["records", "folder", "synthetic"]

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = ROOT / "workflow" / "systems"
TRAINERS = ROOT / "workflow" / "trainers"
ENVIRONMENTS = ROOT / "envs"


class Variant(BaseModel):
    """What a system can be asked to do differently."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    devices: tuple[Device, ...] = Field(("cpu", "cuda"), description="on which it is available")
    precisions: tuple[Precision, ...] = Field(
        get_args(Precision), description="in which it changes something; left out: all"
    )
    inputs: tuple[Input, ...] = Field(get_args(Input), description="likewise")

    def why_idle(self, precision: Precision, read: Input) -> str | None:
        """Why a run with the variant would equal one without, or None if it would not."""
        for value, wanted in ((precision, self.precisions), (read, self.inputs)):
            if value not in wanted:
                return f"it is for {', '.join(wanted)}, not for {value}"
        return None


class Capability(BaseModel):
    """What a system can do for one workload."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    precisions: dict[Device, tuple[Precision, ...]] = {}
    reads: tuple[str, ...] = Field((), description="record formats, the preferred one first")
    variants: tuple[str, ...] = Field((), description="the system's variants that apply to it")
    stages: bool = Field(False, description="whether it can be split into pipeline stages")


class System(BaseModel):
    """One implementation under test: its system.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    framework: str = Field(description="the framework's package")
    about: str
    colour: str | None = Field(
        None, pattern="^#[0-9a-f]{6}$", description="in figures; left out, the id decides"
    )
    python: str | None = Field(None, description='version of its interpreter, such as "3.11"')
    packages: tuple[str, ...] = Field(
        (),
        description="what the trainer imports; the lock fixes their versions and dependencies",
    )
    shares: str | None = Field(
        None, description="the system in whose environment it runs; left out, its own"
    )
    launch: tuple[str, ...] = Field(
        (), description="the framework's own launcher; {placeholders} as in docs/add-a-system.md"
    )
    workloads: dict[str, Capability] = {}
    variants: dict[
        Annotated[str, Field(pattern="^[a-z0-9][a-z0-9.-]*$", max_length=100)], Variant
    ] = {}
    _digests: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _workloads_are_known(self) -> Self:
        for workload, can in self.workloads.items():
            if workload not in load_workloads():
                raise ValueError(
                    f"workloads: got {workload!r}; allowed: {', '.join(load_workloads())}"
                )
            for variant in can.variants:
                if variant not in self.variants:
                    allowed = ", ".join(self.variants) or "none"
                    raise ValueError(
                        f"workloads.{workload}.variants: got {variant!r}; allowed: {allowed}"
                    )
        return self

    @model_validator(mode="after")
    def _variants_differ(self) -> Self:
        for name, variant in self.variants.items():
            of = [one for one, can in self.workloads.items() if name in can.variants]
            if not of:
                raise ValueError(
                    f"variants.{name}: no workload names it; allowed: one that a workload names"
                )
            idle = not variant.flags and not variant.environment
            if idle and any(self.workloads[one].precisions for one in of):
                raise ValueError(
                    f"variants.{name}: changes nothing; allowed: flags or environment, "
                    "or workloads that the system does not train yet"
                )
        for (name, one), (other, two) in combinations(self.variants.items(), 2):
            same = (one.flags, one.environment) == (two.flags, two.environment)
            if same and (one.flags or one.environment):
                raise ValueError(
                    f"variants.{other}: has the flags and environment of {name}; "
                    "allowed: each variant once"
                )
        return self

    @property
    def folder(self) -> Path:
        return SYSTEMS / self.id

    def trainer(self, workload: str) -> Path:
        """The program that trains a workload; without one, the workload is not built yet."""
        return self.folder / f"{workload}.py"

    @property
    def environment(self) -> Path:
        """Where the system's environment lies, relative to the working folder."""
        return Path(".envs", self.shares or self.id)

    @property
    def lock(self) -> Path:
        """The exact packages of the system's environment."""
        return ENVIRONMENTS / f"{self.shares or self.id}.txt"

    @property
    def recipe(self) -> list[Path]:
        """What the environment is made from: the lock, and uv.toml if a package is compiled."""
        settings = SYSTEMS / (self.shares or self.id) / "uv.toml"
        return [self.lock, settings] if settings.exists() else [self.lock]

    @property
    def programs(self) -> list[Path]:
        """The system's programs, one per workload that it trains."""
        return [path for path in map(self.trainer, self.workloads) if path.exists()]

    def code(self, workload: str) -> list[Path]:
        """What decides how the system trains a workload.

        That is the program and all that it imports in turn, the launcher, and what the environment
        is made from.
        """
        launchers = [file for part in self.launch for file in _module(part)]
        code = closure([self.trainer(workload), *launchers], _module)
        return [*sorted(code), *self.recipe]

    def digest(self, workload: str) -> str:
        """The SHA-256 of what decides how the system trains a workload."""
        if workload not in self._digests:
            self._digests[workload] = _sha256_of(self.code(workload), self.recipe_digest)
        return self._digests[workload]

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of what an environment is made from: equal digests, equal environments."""
        host = load_systems()[self.shares] if self.shares else self
        return _sha256_of(self.recipe, repr((host.python, host.packages)))

    def why_not(
        self,
        workload: str,
        precision: str,
        device: Device,
        variant: str | None = None,
        stages: tuple[int, ...] = (),
    ) -> str | None:
        """Why the system cannot train this at all, or None if it can."""
        if workload not in self.workloads or not self.trainer(workload).exists():
            return f"{workload} is not built yet"
        can = self.workloads[workload]
        if stages and not can.stages:
            return f"{self.title} has no pipeline stages for {workload}"
        if precision not in can.precisions.get(device, ()):
            return f"{self.framework} has no {precision} training on {device}"
        if variant is not None and device not in self.variants[variant].devices:
            return f"{self.title} has no {variant} on {device}"
        return None


@cache
def load_systems() -> dict[str, System]:
    """Every system, by its folder's name.

    Raises:
        ReperfError: a system.yaml is not valid.
    """
    return {path.parent.name: _read(path) for path in sorted(SYSTEMS.glob("*/system.yaml"))}


def _sha256_of(files: Iterable[Path], more: str) -> str:
    contents = hashlib.sha256(more.encode())
    for file in files:
        contents.update(sha256(file).encode())
    return contents.hexdigest()


@cache
def _module(name: str) -> list[Path]:
    """The files of a module of the trainers, as Python runs them to import it."""
    package, *inside = name.split(".")
    if package != TRAINERS.name:
        return []
    stem = TRAINERS.joinpath(*inside)
    source = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    if not source.exists():
        return []
    return [source, *(_module(".".join([package, *inside[:-1]])) if inside else [])]


def _read(path: Path) -> System:
    described = read_written(path)
    if isinstance(described, dict):
        described["id"] = path.parent.name
    return checked(System, described, path)
