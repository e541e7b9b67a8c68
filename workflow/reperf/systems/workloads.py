"""What can be trained: one file per workload under workflow/workloads/, and its recipe.

The recipe is the trainers' module of the numbers on which all frameworks agree. It needs only
numpy, so reperf asks it about a shape before any trainer starts.
"""

from collections.abc import Collection, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from trainers.contract import recipe as contract

from reperf.data import KIND_NAMES
from reperf.errors import ReperfError
from reperf.layout import ROOT
from reperf.suggestions import allowed
from reperf.validation import Model, checked, shown
from reperf.yaml_files import read_yaml_file

WORKLOADS = ROOT / "workflow" / "workloads"

Kind = Literal[KIND_NAMES]  # type: ignore[valid-type]  # their folders say it
Shape = dict[str, int]  # the numbers of a workload's samples and model, such as {"image_size": 224}


def written_shape(shape: Shape) -> str:
    """A shape as tables say it: "layers=2 hidden=128"."""
    return " ".join(f"{name}={value}" for name, value in shape.items())


def read_shape(text: str) -> Shape:
    """The shape that `written_shape` has written; ValueError: it has not."""
    pairs = (word.partition("=") for word in text.split())
    return {name: int(value) for name, _, value in pairs}


class Dimension(Model):
    """One number of a workload's shape."""

    about: str
    label: str | None = None
    """how titles say a value that is not the default, such as "{} layers" """
    default: int
    least: int = Field(1, ge=1)
    most: int = Field(1_000_000, le=10**9)

    @model_validator(mode="after")
    def _default_is_allowed(self) -> Self:
        if not self.least <= self.default <= self.most:
            raise ValueError(f"default is {self.default}; allowed: {self.least} to {self.most}")
        return self


class Flops(Model):
    """What a sample costs to train on, at the default shape."""

    sample: float = Field(gt=0)
    """floating-point operations, forward and backward; a multiply-add is two"""
    source: str = Field(min_length=1, description="who counted them, and how")


class Workload(Model):
    """One workload: its YAML file."""

    id: str
    title: str = Field(description="of the default shape")
    family: str | None = None
    """title of what other shapes make; left out: they make the same model"""
    data: Kind = Field(description="what its samples are made from")
    units: tuple[str, ...] = Field(min_length=1)
    """what is counted: samples by their name, then what else logs count"""
    unit: str | None = None
    """what suites count that do not say it; left out, samples"""
    parameters: int | None = Field(None, ge=1, description="trainable, at the default shape")
    flops: Flops | None = Field(None, description="of a sample; left out: nobody has counted them")
    epoch: int | None = Field(None, ge=1, description="samples of the usual data set")
    recipe: str | None = None
    """module of trainers.recipes; left out, the one named as the workload"""
    shape: dict[str, Dimension] = Field(min_length=1)

    @model_validator(mode="after")
    def _unit_is_counted(self) -> Self:
        if self.unit not in (None, *self.units):
            raise ValueError(f"unit: got {self.unit!r}; allowed: {', '.join(self.units)}")
        return self

    @property
    def usual_unit(self) -> str:
        """What suites count that do not say it."""
        return self.unit or self.units[0]

    @property
    def file(self) -> Path:
        return WORKLOADS / f"{self.id}.yaml"

    @property
    def recipe_name(self) -> str:
        """The recipe's module, which workloads may share."""
        return self.recipe or self.id

    @property
    def recipe_file(self) -> Path:
        """Where the recipe lies; it may not exist while no system trains the workload."""
        return WORKLOADS.parent / "trainers" / "recipes" / f"{self.recipe_name}.py"

    @property
    def default_shape(self) -> Shape:
        return {name: dimension.default for name, dimension in self.shape.items()}

    def title_at(self, shape: Shape) -> str:
        """The title of what is trained at a shape, such as "BERT pretraining (2 layers)".

        Values that are not the default are named by their labels, or by their keys if none has one.
        """
        whole = self.default_shape | shape
        usual = self.default_shape
        others = {key: value for key, value in whole.items() if value != usual[key]}
        if not others:
            return self.title
        labels = [
            label.format(value) for key, value in others.items() if (label := self.shape[key].label)
        ]
        words = labels or [f"{key.replace('_', ' ')} {value}" for key, value in others.items()]
        return f"{self.family or self.title} ({', '.join(words)})"

    def shape_of(self, given: Mapping[str, Any]) -> Shape:
        """A whole shape: the given values, and defaults for the rest.

        Raises:
            ValueError: a key is unknown, a value is no whole number or out of bounds, or the recipe
                cannot make it.
        """
        for name, value in given.items():
            if name not in self.shape:
                known = allowed(name, self.shape)
                raise ValueError(f"{name}: unknown key for {self.id}; {known}")
            dimension = self.shape[name]
            if type(value) is not int or not dimension.least <= value <= dimension.most:
                raise ValueError(
                    f"{name}: got {shown(value)}; allowed: a whole number, "
                    f"{dimension.least:,} to {dimension.most:,}: {dimension.about}"
                )
        whole = {**self.default_shape, **given}
        if self.recipe_file.exists():
            self.numbers.check(whole)
        return whole

    def parameters_of(self, shape: Shape) -> int | None:
        """The number of trainable parameters at a shape; None if unknown."""
        if shape == self.default_shape:
            return self.parameters
        if not self.recipe_file.exists():
            return None
        return contract.parameters(self.numbers, shape)

    def flops_at(self, shape: Shape) -> float | None:
        """Floating-point operations to train on a sample, by the recipe; None: not known."""
        if self.flops is None or shape == self.default_shape:
            return self.flops.sample if self.flops else None
        of_recipe = getattr(self.numbers, "flops", None) if self.recipe_file.exists() else None
        known = shape.keys() >= self.default_shape.keys()
        return of_recipe(shape) if of_recipe and known else None

    def why_undivided(self, shape: Shape, shard: int | None, tensor: int | None) -> str | None:
        """Why so many devices cannot share the model at a shape; None if they can."""
        if not self.recipe_file.exists():
            return None
        return contract.why_undivided(self.numbers, shape, shard=shard, tensor=tensor)

    @property
    def stages(self) -> Collection[int]:
        """Into how many pipeline stages the recipe says how to cut the model."""
        return contract.stage_counts(self.numbers) if self.recipe_file.exists() else ()

    @cached_property
    def numbers(self) -> ModuleType:
        """The recipe's module; refused if it is incomplete, or makes other parameters."""
        try:
            module = import_module(f"trainers.recipes.{self.recipe_name}")
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ReperfError(f"{self.recipe_file}: cannot be imported: {reason}") from None
        if missing := [name for name in contract.INTERFACE if not hasattr(module, name)]:
            raise ReperfError(
                f"{self.recipe_file}: {missing[0]} is missing; "
                f"a recipe has {', '.join(contract.INTERFACE)}"
            )
        counts = {"parameters": (self.parameters, contract.parameters(module, self.default_shape))}
        if self.flops and hasattr(module, "flops"):
            counts["flops.sample"] = int(self.flops.sample), module.flops(self.default_shape)
        for key, (stated, counted) in counts.items():
            if stated not in (None, counted):
                raise ReperfError(
                    f"{self.file}: {key}: got {stated}; allowed: {counted}, as many as "
                    f"{self.recipe_file.name} makes at the default shape"
                )
        return module


@cache
def load_workloads() -> dict[str, Workload]:
    """Every workload, by its file's name."""
    return {path.stem: _read(path) for path in sorted(WORKLOADS.glob("*.yaml"))}


def _read(path: Path) -> Workload:
    described = read_yaml_file(path)
    if isinstance(described, dict):
        described["id"] = path.stem
    return checked(Workload, described, path)
