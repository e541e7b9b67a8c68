"""Where a report runs: the Slurm cluster, what runs container images, what the hardware decides."""

import shlex
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from reperf.config.words import (
    MONTH_IN_SECONDS,
    MOST_DEVICES,
    MOST_NODES,
    Label,
    SystemId,
    Text,
    Topology,
    Whole,
)
from reperf.faults import Model
from reperf.systems import BuildKind, LockName, Precision
from reperf.values import MOST_PROCESSES, Number, PlainPath

EngineName = Literal["apptainer", "podman", "docker", "pyxis"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""In the order in which they are preferred where several are there."""


class Cluster(Model):
    """The Slurm cluster that runs the report; left out, this machine runs it."""

    nodes: Number = Field(ge=1, le=MOST_NODES, description="nodes that one run may use")
    devices_per_node: Number = Field(ge=1, le=MOST_DEVICES, description="GPUs per node")
    partition: Label | None = Field(None, description="left out: the cluster's default")
    account: Label | None = Field(None, description="left out: the user's default")
    exclusive: bool = Field(True, description="whether a run has its nodes to itself")
    cpus_per_device: Number = Field(
        1,
        ge=1,
        le=MOST_PROCESSES,
        description="CPUs to ask for; an exclusive run gets all CPUs of its nodes",
    )
    memory_mb: Number | None = Field(
        None,
        ge=1,
        le=1_000_000_000,
        description="MB of memory to ask for on each node; left out: all of it for an exclusive "
        "run, else the cluster's default",
    )
    spare_minutes: Number = Field(
        5,
        ge=1,
        le=MONTH_IN_SECONDS // 60,
        description="minutes that Slurm allows a run beyond its `time_limit`",
    )
    options: tuple[Text, ...] = Field(
        (), description='further options for sbatch, such as "--qos=high"'
    )
    variables: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], Text] = Field(
        {},
        description="environment variables of every launch, such as NCCL_SOCKET_IFNAME",
    )

    def of_launch(self) -> dict[str, Any]:
        """The part that decides how fast a run is: if it changes, runs are trained again."""
        return {"variables": dict(sorted(self.variables.items()))}  # their order decides nothing


class Engine(Model):
    """What runs container images."""

    engine: EngineName | None = Field(
        None, description="left out: the first of these that this machine has"
    )
    options: tuple[Text, ...] = Field(
        (), description="further options for the engine's `run` or `exec`"
    )


class Container(Model):
    """The container that a run trains in, with everything that decides it."""

    engine: EngineName
    image: Text = Field(description="a reference into a registry, or a file or folder")
    options: tuple[Text, ...] = ()

    def __str__(self) -> str:
        """As a message names it."""
        return " ".join((self.image, "in", self.engine, *self.options))


class SiteEnvironment(Model):
    """An environment that is there already, with a system's framework in it."""

    python: PlainPath | None = Field(
        None,
        description="its Python, or the folder of a venv or a conda prefix; left out: the one that "
        "is found after the two below",
    )
    modules: tuple[Text, ...] = Field((), description="what `module load` loads, in this order")
    before: Text | None = Field(
        None, description="a line of bash that comes after them, and before its Python starts"
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.python is None and not self.has_shell:
            raise ValueError("allowed: a path, or python, modules or before")
        return self

    @property
    def has_shell(self) -> bool:
        """Whether bash prepares it."""
        return bool(self.modules or self.before)

    def __str__(self) -> str:
        """As a message names it."""
        return " ".join(self._words())

    def _words(self) -> Iterator[str]:
        if self.python:
            yield str(self.python)
        if self.modules:
            yield f"with modules {shlex.join(self.modules)}"
        if self.before:
            yield f"after {self.before!r}"


SiteEnvironmentOrPath = Annotated[
    SiteEnvironment,
    BeforeValidator(
        lambda named: {"python": named} if isinstance(named, str) else named,
        json_schema_input_type=str | SiteEnvironment,
    ),
]


class Hardware(Model):
    """What the hardware decides: which builds run there, and in which precisions."""

    locks: dict[SystemId, LockName] = Field(
        {}, description="the lock that a system uses, where its first does not run there"
    )
    ways: dict[SystemId, BuildKind] = Field(
        {}, description="where a system gets its framework, if its preferred way does not run there"
    )
    unfit: dict[SystemId, dict[BuildKind, Text]] = Field(
        {}, description="systems that do not run there: from a lock or an image, and why"
    )
    lacking: dict[SystemId, dict[Precision, Text]] = Field(
        {}, description="precisions in which a system cannot train there, and why"
    )
    topologies: dict[Topology, Text] = Field(
        {}, description="topologies that this machine is too small for, and why"
    )
    shared: dict[Topology, Whole] = Field(
        {}, description="topologies whose devices share this machine's CPUs, and how many these are"
    )
