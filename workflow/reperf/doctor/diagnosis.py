"""What the doctor asks, what it sees on each node, and what it finds: results/doctor.json."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from reperf.config import Run
from reperf.faults import Model
from reperf.files import whole_file
from reperf.systems import Device
from reperf.training.record import Host

NAMED_NODES = 4
"""The table names up to this many sound nodes; of more, it gives the number."""

Level = Literal["ok", "warning", "error", "not there"]
"""An error spoils runs, a warning may; "not there" is what this hardware does not have."""


class Request(Model):
    """What a probe is asked."""

    node: str = Field(description="the node's name, as the caller knows it")
    folder: Path = Field(description="the work folder, absolute")
    meeting: Path = Field(description="folder in the work folder where the nodes leave notes")
    secret: str = Field(description="what the caller's note in that folder says")
    runs: tuple[Run, ...] = Field(description="one for each build to try; all are made")


class BusyProcess(Model):
    """Another process that uses a CPU."""

    pid: int
    name: str
    percent: float = Field(description="of one CPU")


class Processor(Model):
    """What decides how fast the CPUs are."""

    governors: dict[str, int] | None = Field(description="governor -> CPUs; None: no cpufreq")
    megahertz: tuple[int, int] | None = Field(description="slowest and fastest CPU now")
    allowed_megahertz: int | None = Field(description="the lowest limit set on a CPU")
    possible_megahertz: int | None = Field(description="what the hardware allows that CPU")
    quota: float | None = Field(description="CPUs that the control group grants; None: no limit")
    settings: dict[str, str] = Field(description="of the kernel, such as huge pages and SMT")
    load: float = Field(description="mean number of running processes, last minute")
    busy: tuple[BusyProcess, ...]


class Space(Model):
    """Memory and disks, bytes."""

    memory_available: int
    swap_used: int
    shared_memory_free: int | None = Field(description="/dev/shm")
    disk_free: int | None = Field(description="in the work folder; None: it cannot be seen")
    inodes_free: int | None = Field(description="None: cannot be seen, or without a limit")


class GpuState(Model):
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


class FabricPort(Model):
    """A port of an InfiniBand or RoCE adapter."""

    device: str
    port: int
    state: str = Field(description='such as "ACTIVE"')
    gigabits: float = Field(description="rate per second")
    link: str = Field(description="InfiniBand or Ethernet")

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"


class EnvironmentState(Model):
    """One build as it is on a node."""

    trouble: str = Field(description="why its trainer does not start; empty: it does")
    recipe_sha256: str | None = None
    python: str | None = None
    framework: str = Field("", description="its package and version")
    packages: dict[str, str] = Field({})
    compilers: dict[Device, str | None] = Field(
        {}, description="what compiles for a device while a run trains; None: nothing"
    )
    unfit: str | None = Field(None, description="why its code does not run on the node's GPUs")


class Probe(Model):
    """What one node reported about itself."""

    host: Host
    shared_trouble: str = Field(description="why the node cannot work in the work folder")
    processor: Processor
    space: Space
    gpus: tuple[GpuState, ...]
    fabric: tuple[FabricPort, ...]
    environments: dict[str, EnvironmentState]


class Visit(Model):
    """How asking one node went."""

    node: str
    offered: bool = Field(True, description="whether the cluster gives jobs to the node at all")
    trouble: str = Field("", description="why there is no probe")
    probe: Probe | None = None
    clock_offset: float | None = Field(
        None, description="seconds the node's clock is behind the caller's, transfer included"
    )
    note_arrived: bool = Field(False, description="whether the caller sees what the node wrote")


class Transfer(Model):
    """An all-reduce of one size."""

    bytes: int
    seconds: float = Field(description="median")

    def bus_bandwidth(self, world_size: int) -> float:
        """Bytes per second that each link carries, as NVIDIA's nccl-tests count it.

        An all-reduce moves 2 (n - 1) / n of the data over the busiest link, whatever the algorithm.
        """
        return self.bytes / self.seconds * 2 * (world_size - 1) / world_size


class Hop(Model):
    """What one rank needs to send numbers to the next one, or to the one before."""

    sender: int
    receiver: int
    bytes: int
    seconds: float = Field(description="median, until the receiver has said that it has them")

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.bytes / self.seconds


class Trial(Model):
    """A system's framework on all its devices of some nodes, started as its runs are."""

    name: str = Field(description="of the system and its build, see reperf.doctor.trials.name_of")
    build: str
    nodes: tuple[str, ...]
    world_size: int = 0
    devices: tuple[str, ...] = Field((), description="what each rank has, in the order of ranks")
    convolution_error: float | None = Field(
        None, description="the largest, as a part of the largest number that numpy's has"
    )
    threads: int = Field(0, description="CPU threads of a device")
    matrix_rates: dict[str, float] = Field(
        {},
        description="data type -> floating-point operations a second of a device's products of "
        "matrices, mean of the ranks",
    )
    library: str = Field("", description="what added up numbers of different ranks")
    transfers: tuple[Transfer, ...] = ()
    hops: tuple[Hop, ...] = Field(
        (), description="between ranks next to each other, both ways, where the framework can"
    )
    loaded: float | None = Field(
        None, description="samples per second that the loaders of one node's ranks give together"
    )
    needed: float | None = Field(
        None, description="what as many devices trained without a loader, by the last report here"
    )
    trouble: str = Field("", description="why there is nothing, one line")
    log: str = Field("", description="what the ranks printed")

    @property
    def bandwidth(self) -> float:
        """Bytes per second of the largest all-reduce; 0: there was none."""
        return self.transfers[-1].bus_bandwidth(self.world_size) if self.transfers else 0.0


class Finding(Model):
    """What one check says of some nodes."""

    check: str
    level: Level
    nodes: tuple[str, ...]
    what: str
    advice: str = ""


class Diagnosis(Model):
    """results/doctor.json."""

    diagnosis_version: Literal["1.0"] = "1.0"
    profile: str
    configfile: str
    made: str = Field(description="ISO 8601, UTC")
    on_cluster: bool = Field(False, description="whether it looked at the nodes of a cluster")
    partition: str | None = Field(None, description="of which; None: of the default one")
    findings: tuple[Finding, ...]
    visits: tuple[Visit, ...]
    trials: tuple[Trial, ...]

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
    def read(cls, path: Path | str) -> "Diagnosis | None":
        """Read what was written; None if it is not there, or is of another version of reperf."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except (OSError, ValidationError):
            return None
