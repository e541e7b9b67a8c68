"""How devices share the training, and parameter servers: an entry's `parallel` and `servers`."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from reperf.config.words import MOST_DEVICES, MOST_NODES, MOST_SAMPLES, with_examples
from reperf.systems import Parallelism
from reperf.validation import Model
from reperf.values import MOST_PROCESSES, Number

Devices = Annotated[Number, Field(ge=1, le=MOST_NODES * MOST_DEVICES)]

MOST_SERVERS = 14  # on a node: each needs a port of its own, of the sixteen that a Slurm job has


_KINDS: tuple[Parallelism, ...] = ("pipeline", "shard", "tensor")


class Parallel(Model, json_schema_extra=with_examples):
    """What is not data parallel alone."""

    pipeline: tuple[Devices, ...] = ()
    """replicas of each pipeline stage, such as [7, 1]; their sum is the number of devices"""
    micro_batches: Annotated[Number, Field(ge=1, le=MOST_SAMPLES)] | None = None
    """how many parts a pipeline cuts a batch into; left out: as the system does by default"""
    shard: Devices | None = None
    """over how many devices weights, gradients and optimizer are spread"""
    tensor: Devices | None = Field(None, description="over how many devices each layer is spread")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.kinds:
            raise ValueError("allowed: one of pipeline, shard, tensor; left out: data parallel")
        if self.pipeline and len(self.kinds) > 1:
            raise ValueError(f"{' and '.join(self.kinds)}; allowed: pipeline alone")
        if self.micro_batches and not self.pipeline:
            raise ValueError("micro_batches without pipeline; allowed: both, or neither")
        return self

    @property
    def kinds(self) -> tuple[Parallelism, ...]:
        """Which of the kinds of parallelism it asks for."""
        return tuple(kind for kind in _KINDS if getattr(self, kind))

    @property
    def name(self) -> str:
        """What names it in paths, such as "stages-7-1" or "tensor-2+shard-4"."""
        return "+".join(self._parts("{}-{}", "stages", "-", "micro"))

    @property
    def title(self) -> str:
        """What tables and figures call it, such as "stages 7 + 1"."""
        return ", ".join(self._parts("{} {}", "stages", " + ", "micro-batches"))

    def _parts(self, form: str, stages: str, between: str, micro_batches: str) -> Iterator[str]:
        if self.pipeline:
            yield form.format(stages, between.join(map(str, self.pipeline)))
        if self.micro_batches:
            yield form.format(micro_batches, self.micro_batches)
        if self.tensor:
            yield form.format("tensor", self.tensor)
        if self.shard:
            yield form.format("shard", self.shard)

    def readers(self, world_size: int) -> int:
        """How many of the ranks read batches of their own."""
        return self.pipeline[0] if self.pipeline else world_size // (self.tensor or 1)

    def why_not_on(self, devices: int) -> str | None:
        """Why so many devices cannot share the work like that; None if they can."""
        if self.pipeline and sum(self.pipeline) != devices:
            return f"{self.title} needs {sum(self.pipeline)} devices, not {devices}"
        together = (self.tensor or 1) * (self.shard or 1)
        if devices % together:
            return f"{self.title} needs multiples of {together} devices, not {devices}"
        return None


class Servers(Model, json_schema_extra=with_examples):
    """Parameter servers, which `topology` does not count."""

    per_node: Number = Field(1, ge=1, le=MOST_SERVERS, description="how many on each node")
    threads: Number = Field(1, ge=1, le=MOST_PROCESSES, description="CPU threads of each")

    @property
    def name(self) -> str:
        """What names them in paths, such as "servers-1" or "servers-2x4"."""
        return f"servers-{self.per_node}" + (f"x{self.threads}" if self.threads > 1 else "")

    @property
    def title(self) -> str:
        """What tables and figures call them, such as "2 servers a node, 4 threads each"."""
        servers = f"{self.per_node} server{'s' * (self.per_node > 1)} a node"
        return servers + (f", {self.threads} threads each" if self.threads > 1 else "")

    @property
    def cpus(self) -> int:
        """Those that they take on each node."""
        return self.per_node * self.threads
