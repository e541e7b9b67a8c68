"""The systems under test, one folder each, and the workloads that they train.

A system is what its folder under workflow/systems/ says in system.yaml; no rule and no library
module names one.
"""

import hashlib
import importlib.util
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reperf.building.code import closure
from reperf.errors import ReperfError
from reperf.faults import first_fault
from reperf.files import sha256
from reperf.written import read_written

Device = Literal["cpu", "cuda"]
Precision = Literal["fp32", "amp"]
Input = Literal["records", "folder", "synthetic"]

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = ROOT / "workflow" / "systems"
ENVIRONMENTS = ROOT / "envs"


def _steplog() -> object:
    """The trainers' own module: the one place that names workloads and parameter counts."""
    spec = importlib.util.spec_from_file_location("steplog", SYSTEMS / "steplog.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WORKLOADS: dict[str, dict] = _steplog().WORKLOADS
"""What can be trained: name -> {"title": ..., "unit": unit of a sample, "parameters": count}."""


class Variant(BaseModel):
    """What a system can be asked to do differently."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    devices: tuple[Device, ...] = Field(("cpu", "cuda"), description="on which it can be asked")
    workloads: tuple[str, ...] = Field(
        tuple(WORKLOADS), description="in which it changes something; left out: all"
    )
    precisions: tuple[Precision, ...] = Field(get_args(Precision), description="likewise")
    inputs: tuple[Input, ...] = Field(get_args(Input), description="likewise")
    usual: bool = Field(False, description="whether the system does so without being asked, too")

    def why_idle(self, workload: str, precision: Precision, reads: Input) -> str | None:
        """Why a run with it would be the same as one without, or None if it differs."""
        for value, wanted in (
            (workload, self.workloads),
            (precision, self.precisions),
            (reads, self.inputs),
        ):
            if value not in wanted:
                return f"it is for {', '.join(wanted)}, not for {value}"
        return None


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
        description="what the trainer imports; the lock fixes their versions, and all below them",
    )
    shares: str | None = Field(
        None, description="the system whose environment it runs in; left out, its own"
    )
    launch: tuple[str, ...] = Field(
        (), description="the framework's own launcher; {placeholders} as in docs/add-a-system.md"
    )
    workloads: tuple[str, ...] = ()
    precisions: dict[Device, tuple[str, ...]] = {}
    reads: tuple[str, ...] = Field((), description="record formats, the preferred one first")
    variants: dict[
        Annotated[str, Field(pattern="^[a-z0-9][a-z0-9.-]*$", max_length=100)], Variant
    ] = {}

    @model_validator(mode="after")
    def _variants_differ(self) -> Self:
        for name, variant in self.variants.items():
            if unknown := set(variant.workloads) - set(WORKLOADS):
                raise ValueError(
                    f"variants.{name}.workloads: got {min(unknown)!r}; "
                    f"allowed: {', '.join(WORKLOADS)}"
                )
            idle = not variant.flags and not variant.environment
            if idle and set(variant.workloads) & set(self.workloads):
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

    @property
    def trainer(self) -> Path:
        return self.folder / "train.py"

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
        """What the environment is made from: the lock, and uv.toml where a package is compiled."""
        settings = SYSTEMS / (self.shares or self.id) / "uv.toml"
        return [self.lock, settings] if settings.exists() else [self.lock]

    @property
    def code(self) -> list[Path]:
        """What decides how the system trains: its code, all that it imports, and the recipe."""
        launchers = [file for part in self.launch for file in _module(part)]
        files = closure([*self.folder.glob("*.py"), *launchers], _module)
        return [*sorted(files), *self.recipe]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what decides how the system trains, its environment's recipe included."""
        return _sha256_of(self.code, self.recipe_digest)

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of what an environment is made from; one made again from it is the same."""
        host = load_systems()[self.shares] if self.shares else self
        return _sha256_of(self.recipe, repr((host.python, host.packages)))

    def why_not(
        self, workload: str, precision: str, device: Device, variant: str | None = None
    ) -> str | None:
        """Why the system cannot train this at all, or None if it can."""
        if not self.trainer.exists():
            return "not built yet"
        if workload not in self.workloads:
            return f"{workload} is not built yet"
        if precision not in self.precisions.get(device, ()):
            return f"{self.framework} has no {precision} training on {device}"
        if variant is not None and device not in self.variants[variant].devices:
            return f"{self.title} has no {variant} on {device}"
        return None


@cache
def load_systems() -> dict[str, System]:
    """Every system, by its folder's name.

    Raises:
        ReperfError: a system.yaml that does not say what a system is.
    """
    return {path.parent.name: _read(path) for path in sorted(SYSTEMS.glob("*/system.yaml"))}


def _sha256_of(files: Iterable[Path], more: str) -> str:
    contents = hashlib.sha256(more.encode())
    for file in files:
        contents.update(sha256(file).encode())
    return contents.hexdigest()


def _module(name: str) -> list[Path]:
    """The file of a module that trainers share; none if it is a framework's."""
    file = SYSTEMS.joinpath(*name.split(".")).with_suffix(".py")
    return [file] if file.exists() else []


def _read(path: Path) -> System:
    described = read_written(path)
    if isinstance(described, dict):
        described["id"] = path.parent.name
    try:
        return System.model_validate(described)
    except ValidationError as error:
        raise ReperfError(f"{path}: {first_fault(error, System, described)}") from None
