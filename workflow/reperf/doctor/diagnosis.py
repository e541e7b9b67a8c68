"""What the doctor asks, what it sees on each node, and what it finds: results/doctor.json."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from reperf.files import whole_file
from reperf.training.record import Host

DIAGNOSIS = Path("results/doctor.json")

NAMED_NODES = 4
"""The table names up to this many sound nodes; of more, it gives the number."""

Level = Literal["ok", "warning", "error", "not there"]
"""An error spoils runs, a warning may; "not there" is what this hardware does not have."""


class _Seen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Request(_Seen):
    """What a probe is asked."""

    node: str = Field(description="the node's name, as the caller knows it")
    folder: Path = Field(description="the work folder, absolute")
    meeting: Path = Field(description="folder in the work folder where the nodes leave notes")
    secret: str = Field(description="what the caller's note in that folder says")
    systems: tuple[str, ...] = Field(description="whose environments, already built, to try")


class BusyProcess(_Seen):
    """Another process that uses a CPU."""

    pid: int
    name: str
    percent: float = Field(description="of one CPU")


class Processor(_Seen):
    """What decides how fast the CPUs are."""

    governors: dict[str, int] | None = Field(description="governor -> CPUs; None: no cpufreq")
    megahertz: tuple[int, int] | None = Field(description="slowest and fastest CPU now")
    allowed_megahertz: int | None = Field(description="the lowest limit set on a CPU")
    possible_megahertz: int | None = Field(description="what the hardware allows that CPU")
    quota: float | None = Field(description="CPUs that the control group grants; None: no limit")
    settings: dict[str, str] = Field(description="of the kernel, such as huge pages and SMT")
    load: float = Field(description="mean number of running processes, last minute")
    busy: tuple[BusyProcess, ...]


class Space(_Seen):
    """Memory and disks, bytes."""

    memory_available: int
    swap_used: int
    shared_memory_free: int | None = Field(description="/dev/shm")
    disk_free: int | None = Field(description="in the work folder; None: it cannot be seen")
    inodes_free: int | None = Field(description="None: cannot be seen, or without a limit")


class GpuState(_Seen):
    """One GPU as NVML shows it; None where NVML does not say."""

    name: str
    sm_megahertz: int | None
    max_sm_megahertz: int | None
    application_sm_megahertz: int | None
    default_application_sm_megahertz: int | None
    slowed_by: tuple[str, ...] = Field(description="reasons for clocks below what load allows")
    persistent: bool | None
    power_limit_watts: float | None
    default_power_limit_watts: float | None
    ecc: bool | None
    uncorrected_errors: int | None = Field(description="of the memory, since the driver started")
    row_remap_pending: bool | None
    row_remap_failed: bool | None
    nvlinks: tuple[bool, ...] = Field(description="for each link, whether it is up")
    mig: bool | None
    memory_used: int
    processes: tuple[int, ...] = Field(description="processes that compute on it")


class FabricPort(_Seen):
    """A port of an InfiniBand or RoCE adapter."""

    device: str
    port: int
    state: str = Field(description='such as "ACTIVE"')
    gigabits: float = Field(description="rate per second")
    link: str = Field(description="InfiniBand or Ethernet")

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"


class EnvironmentState(_Seen):
    """One system's environment as it is on a node."""

    trouble: str = Field(description="why its trainer does not start; empty: it does")
    lock_sha256: str | None = None
    python: str | None = None
    packages: dict[str, str] = {}


class Probe(_Seen):
    """What one node reported about itself."""

    host: Host
    shared_trouble: str = Field(description="why the node cannot work in the work folder")
    processor: Processor
    space: Space
    gpus: tuple[GpuState, ...]
    fabric: tuple[FabricPort, ...]
    environments: dict[str, EnvironmentState]


class Visit(_Seen):
    """How asking one node went."""

    node: str
    offered: bool = Field(True, description="whether the cluster gives jobs to the node at all")
    trouble: str = Field("", description="why there is no probe")
    probe: Probe | None = None
    clock_offset: float | None = Field(
        None, description="seconds the node's clock is behind the caller's, transfer included"
    )
    note_arrived: bool = Field(False, description="whether the caller sees what the node wrote")


class Transfer(_Seen):
    """An all-reduce of one size."""

    bytes: int
    seconds: float = Field(description="median")

    def bus_bandwidth(self, world_size: int) -> float:
        """Bytes per second that each link carries, as NVIDIA's nccl-tests count it.

        An all-reduce moves 2 (n - 1) / n of the data over the busiest link, whatever the algorithm.
        """
        return self.bytes / self.seconds * 2 * (world_size - 1) / world_size


class AllReduce(_Seen):
    """All-reduces between all devices of the nodes, in one system's environment."""

    system: str | None = Field(description="in whose environment; None: no system can")
    nodes: tuple[str, ...] = ()
    world_size: int = 0
    backend: str = ""
    transfers: tuple[Transfer, ...] = ()
    trouble: str = Field("", description="why there is nothing, one line")


class Finding(_Seen):
    """What one check says of some nodes."""

    check: str
    level: Level
    nodes: tuple[str, ...]
    what: str
    advice: str = ""


class Diagnosis(_Seen):
    """results/doctor.json."""

    diagnosis_version: Literal[1] = 1
    profile: str
    configfile: str
    made: str = Field(description="ISO 8601, UTC")
    findings: tuple[Finding, ...]
    visits: tuple[Visit, ...]
    all_reduce: AllReduce

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(visit.node for visit in self.visits)

    def count(self, level: Level) -> int:
        """How many findings have this level."""
        return sum(finding.level == level for finding in self.findings)

    def place(self, finding: Finding) -> str:
        """Where a finding holds: the nodes' names, or their number where nobody needs the names."""
        if len(self.nodes) > 1 and finding.nodes == self.nodes:
            return f"all {len(self.nodes)} nodes"
        if len(finding.nodes) > NAMED_NODES and finding.level in ("ok", "not there"):
            return f"{len(finding.nodes)} of {len(self.nodes)} nodes"
        return ", ".join(finding.nodes)

    def write(self, path: Path) -> None:
        """Write as indented JSON, whole or not at all."""
        with whole_file(path) as stream:
            stream.write(self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: Path | str) -> "Diagnosis":
        """Read what was written.

        Raises:
            pydantic.ValidationError: the file is not a diagnosis.
        """
        return cls.model_validate_json(Path(path).read_bytes())
