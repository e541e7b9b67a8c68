"""Where a report runs: the Slurm cluster, what runs container images, what the hardware decides."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

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
from reperf.values import GRES, MOST_PROCESSES, Number, PlainPath

EngineName = Literal["apptainer", "podman", "docker", "pyxis"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""In the order in which they are preferred where several are there."""


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("allowed: an absolute path, such as /scratch")
    return path


def gpus_option(gres: str | None, count: int) -> str:
    """The option of Slurm's commands that asks for GPUs on each node.

    Args:
        gres: what Slurm calls a GPU; None: any of them.
        count: of one node.
    """
    return f"--gres={gres}:{count}" if gres else f"--gpus-per-node={count}"


_CLUSTERS = [
    {
        "nodes": 4,
        "devices_per_node": 8,
        "partition": "gpu",
        "account": "benchmarks",
        "exclusive": False,
        "cpus_per_device": 12,
        "memory_mb": 512_000,
        "spare_minutes": 10,
        "gres": "gpu:h100",
        "options": ["--qos=high", "--exclude=node7"],
        "before": ["ulimit -l unlimited", "module load nccl"],
        "stage": "/scratch",
        "variables": {"NCCL_SOCKET_IFNAME": "ib0"},
    },
]


class Cluster(Model, json_schema_extra={"examples": _CLUSTERS}):
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
    gres: Annotated[str, Field(pattern=GRES)] | None = Field(
        None,
        description="what Slurm calls a GPU, asked for by --gres; left out: --gpus-per-node, "
        "whatever type the GPUs are of",
    )
    options: tuple[Text, ...] = Field((), description="further options for sbatch")
    before: tuple[Text, ...] = Field(
        (),
        description="lines of bash that each node runs before a launcher starts there; what they "
        "set reaches the ranks, and if a line fails, the run does",
    )
    stage: Annotated[PlainPath, AfterValidator(_absolute)] | None = Field(
        None,
        description="folder on each node's own disk, into which a run copies the records that it "
        "reads, if they are not there yet; left out: runs read them where they lie",
    )
    variables: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], Text] = Field(
        {},
        description="environment variables of every launch, such as NCCL_SOCKET_IFNAME",
    )

    def of_launch(self) -> dict[str, Any]:
        """The part that decides how fast a run is: if it changes, runs are trained again."""
        optional = {
            "gres": self.gres,
            "before": list(self.before),
            "stage": self.stage and str(self.stage),
        }
        # The order of variables decides nothing; plans from before these keys stay as they are.
        return {"variables": dict(sorted(self.variables.items()))} | {
            key: value for key, value in optional.items() if value
        }


_ENGINES = [
    {"engine": "apptainer", "options": ["--nvccli"]},
]


class Engine(Model, json_schema_extra={"examples": _ENGINES}):
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
