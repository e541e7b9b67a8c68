"""The Slurm cluster that runs a report, and what its launches are wrapped in."""

from typing import Annotated, Any

from pydantic import Field

from reperf.config.words import (
    MONTH_IN_SECONDS,
    MOST_DEVICES,
    MOST_NODES,
    MOST_TEXTS,
    Label,
    Text,
    Texts,
)
from reperf.faults import Model, YesOrNo
from reperf.values import MOST_PROCESSES, Number


class Cluster(Model):
    """The Slurm cluster that runs the report; left out, this machine runs it."""

    nodes: Number = Field(ge=1, le=MOST_NODES, description="nodes that one run may use")
    devices_per_node: Number = Field(ge=1, le=MOST_DEVICES, description="GPUs per node")
    partition: Label | None = Field(None, description="left out: the cluster's default")
    account: Label | None = Field(None, description="left out: the user's default")
    exclusive: YesOrNo = Field(True, description="whether a run has its nodes to itself")
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
    options: Texts = Field((), description='further options for sbatch, such as "--qos=high"')
    variables: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], Text] = Field(
        {},
        max_length=MOST_TEXTS,
        description="environment variables of every launch, such as NCCL_SOCKET_IFNAME",
    )

    def of_launch(self) -> dict[str, Any]:
        """The part that decides how fast a run is: if it changes, runs are trained again."""
        return {"variables": dict(sorted(self.variables.items()))}  # their order decides nothing
