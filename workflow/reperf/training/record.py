"""The run record: what was run, where, and how it ended."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reperf.config import Run
from reperf.errors import ReperfError
from reperf.faults import first_fault
from reperf.files import whole_file

LARGEST_RECORD = 1 << 24
"""Bytes; a larger file is not read."""

Status = Literal["ok", "oom", "failed", "timeout", "unsupported"]
FINAL = ("ok", "oom", "unsupported")
"""The ends of a run that another try would not change."""


class Gpu(BaseModel):
    """One GPU that the run could see."""

    name: str
    uuid: str
    memory_bytes: int


class Host(BaseModel):
    """The machine of rank 0."""

    hostname: str
    cpu: str
    cores: int = Field(description="logical CPUs that the run may use")
    memory_bytes: int
    os: str
    kernel: str
    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    topology_matrix: str | None = Field(None, description="nvidia-smi topo -m")


class Environment(BaseModel):
    """What the trainer ran in."""

    lock: str = Field(description="the lock file, relative to the repository")
    lock_sha256: str
    python: str
    packages: dict[str, str] = Field(description="what was really installed: name -> version")


class Power(BaseModel):
    """What NVML measured in the window: the run's GPUs on the nodes named here, together."""

    mean_watts: float
    energy_joules: float
    mean_utilisation_percent: float
    nodes: tuple[str, ...] = Field((), description="the metered nodes; empty: the first node")
    first: int | None = Field(
        None, description="iteration whose end begins the window; None: the whole run was metered"
    )
    last: int | None = Field(None, description="iteration whose end ends the window")


class ComputedIn(BaseModel):
    """The data types in which a model was trained, as the trainer said."""

    compute: str = Field(description="of convolutions and matrix products")
    weights: str = Field(description="of the weights, and of their updates")
    loss_scale: float | Literal["dynamic"] | None = Field(
        None, description="what the loss was multiplied by; null: nothing"
    )

    def __str__(self) -> str:
        weights = f", {self.weights} weights" if self.weights != self.compute else ""
        scale = self.loss_scale
        scaled = f"{scale:g}" if isinstance(scale, float) else scale
        return self.compute + weights + (f", loss scale {scaled}" if scale is not None else "")


class LastHeard(BaseModel):
    """The last sign of life of one rank."""

    rank: int
    iteration: int | None
    seconds: float = Field(description="after the run's start")


class RunRecord(BaseModel):
    """run.json: written at the end of every run, however it ended."""

    model_config = ConfigDict(extra="forbid")

    record_version: Literal[1, 2, 3] = Field(
        3, description="1: no trainer, cluster or seal; 2: runs had an image size, not a shape"
    )
    status: Status
    reason: str = Field("", description="why the status is not ok, one line")
    run: Run
    attempt: int = Field(description="1 for the first try")
    command: tuple[str, ...]
    variables: dict[str, str] = Field(description="environment variables that the launch set")
    environment: Environment
    trainer: str = Field("", description="SHA-256 of all that decides how the system trains")
    cluster: dict[str, Any] | None = Field(
        None, description="the cluster's container and variables; null on this machine"
    )
    git_commit: str | None
    git_dirty: bool | None
    host: Host
    nodes: tuple[str, ...] = Field((), description="their names, that of rank 0 first")
    started: str = Field(description="ISO 8601, UTC")
    ended: str
    seconds: float
    exit_code: int | None
    last_heard: tuple[LastHeard, ...] = ()
    peak_memory_bytes: tuple[int, ...] = Field((), description="per device, as the trainer said")
    computed_in: ComputedIn | None = None
    loader_threads: int | None = Field(
        None,
        description="threads per device that read and decode, in the trainer's own process, "
        "as it said",
    )
    power: Power | None = None
    log_sha256: str

    def write(self, path: Path) -> None:
        """Write the record as indented JSON with its seal, whole or not at all."""
        content = self.model_dump(mode="json")
        with whole_file(path) as stream:
            json.dump(content | {"seal": _seal(content)}, stream, indent=2, ensure_ascii=False)
            stream.write("\n")

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a record.

        Raises:
            ReperfError: the file is missing, is not a run record, or has changed since it was
                written.
        """
        try:
            with Path(path).open("rb") as stream:
                return cls.parse(stream.read(LARGEST_RECORD + 1), str(path))
        except OSError as error:
            raise ReperfError(f"{path}: not a run record: {error.strerror or error}") from None

    @classmethod
    def parse(cls, text: bytes, name: str) -> Self:
        """Make a record from a file's bytes.

        Args:
            name: the file's, for the message.

        Raises:
            ReperfError: the file is not a run record, or has changed since it was written.
        """
        if len(text) > LARGEST_RECORD:
            raise ReperfError(
                f"{name}: not a run record: larger than {LARGEST_RECORD >> 20} MiB, which none is"
            )
        try:
            content: Any = json.loads(text)
            seal = content.pop("seal", None) if isinstance(content, dict) else None
            record = cls.model_validate(content)
        except ValidationError as error:
            fault = first_fault(error, cls, content)
            raise ReperfError(f"{name}: not a run record: {fault}") from None
        except (ValueError, RecursionError) as error:
            raise ReperfError(f"{name}: not a run record: {error}") from None
        if record.record_version > 1 and seal != _seal(content):
            raise ReperfError(f"{name}: has changed since it was written")
        return record


def records_of(runs: Iterable[Run]) -> Iterator[RunRecord]:
    """The records of planned runs in the working folder.

    A record that cannot be read, or is of another run, is skipped: measuring has refused it.
    """
    for run in runs:
        with suppress(ReperfError):
            record = RunRecord.read(run.record)
            if record.run == run:
                yield record


def _seal(content: dict[str, Any]) -> str:
    """The SHA-256 of a record's content, which tells an edited record.

    It covers the file's content rather than the model, which may gain fields later.
    """
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()
