"""The run record: what was run, where, and how it ended."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from reperf.config import Run
from reperf.files import whole_file

Status = Literal["ok", "oom", "failed", "timeout", "unsupported"]


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
    """What NVML measured over the run, all used GPUs together."""

    mean_watts: float
    energy_joules: float
    mean_utilisation_percent: float


class LastHeard(BaseModel):
    """The last sign of life of one rank."""

    rank: int
    iteration: int | None
    seconds: float = Field(description="after the run's start")


class RunRecord(BaseModel):
    """run.json: written at the end of every run, however it ended."""

    model_config = ConfigDict(extra="forbid")

    record_version: Literal[1] = 1
    status: Status
    reason: str = Field("", description="why the status is not ok, one line")
    run: Run
    attempt: int = Field(description="1 for the first try")
    command: tuple[str, ...]
    variables: dict[str, str] = Field(description="environment variables that the launch set")
    environment: Environment
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
    power: Power | None = None
    log_sha256: str

    def write(self, path: Path) -> None:
        """Write the record as indented JSON, whole or not at all."""
        with whole_file(path) as stream:
            json.dump(self.model_dump(mode="json"), stream, indent=2, ensure_ascii=False)
            stream.write("\n")

    @classmethod
    def read(cls, path: Path | str) -> "RunRecord":
        """Read a record.

        Raises:
            pydantic.ValidationError: the file is not a run record.
        """
        content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls.model_validate(content)
