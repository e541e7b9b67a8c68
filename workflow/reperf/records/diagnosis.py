"""What `reperf doctor` found: the file results/doctor.json, for those who write and read it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError

from reperf.builds import build_of
from reperf.config import Run
from reperf.files import write_whole
from reperf.host import Host
from reperf.layout import DIAGNOSIS
from reperf.systems import Device
from reperf.validation import Model

NAMED_NODES = 4  # the table names up to this many sound nodes; of more, it gives the number

Level = Literal["ok", "warning", "error", "not there"]
"""An error spoils runs, a warning may; "not there" is what this hardware does not have."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check on one node."""

    level: Level
    what: str
    advice: str = ""

    def on(self, check: str, *nodes: str) -> "Finding":
        """The verdict on some nodes, as a row of the table."""
        return Finding(check=check, nodes=nodes, **vars(self))


class EnvironmentState(Model):
    """One build as it is on a node."""

    trouble: str = Field(description="why its trainer does not start; empty: it does")
    recipe_sha256: str | None = None
    python: str | None = None
    framework: str = Field("", description="its package and version")
    packages: dict[str, str] = Field({})
    compilers: dict[Device, str | None] = Field({})
    """what compiles for a device while a run trains; None: nothing"""
    unfit: str | None = Field(None, description="why its code does not run on the node's GPUs")


class Probe(Model):
    """What one node reported about itself."""

    host: Host
    shared_trouble: str = Field(description="why the node cannot work in the work folder")
    disk_free: int | None = Field(description="bytes in the work folder; None: it cannot be seen")
    ports: tuple[float, ...]
    """gigabits per second of each active port of an InfiniBand or RoCE adapter"""
    settings: dict[str, str] = Field(description="of the kernel, such as huge pages and SMT")
    readings: dict[str, Verdict]
    """check -> what the node says of itself and of its GPUs; nothing if unknown"""
    environments: dict[str, EnvironmentState]


class NodeReport(Model):
    """One node's answer, or why there is none."""

    node: str
    offered: bool = Field(True, description="whether the cluster gives jobs to the node at all")
    trouble: str = Field("", description="why there is no probe")
    probe: Probe | None = None
    clock_offset: float | None = None
    """seconds the node's clock is behind the caller's, transfer included"""
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


class Trial(Model):
    """A system's framework on all its devices of some nodes, started as its runs are."""

    name: str = Field(description="of the system and its build, see trial_name")
    build: str
    nodes: tuple[str, ...]
    world_size: int = 0
    devices: tuple[str, ...] = Field((), description="what each rank has, in the order of ranks")
    convolution_error: float | None = None
    """the largest, as a part of the largest number that numpy's has"""
    threads: int = Field(0, description="CPU threads of a device")
    matrix_rates: dict[str, float] = Field({})
    """data type -> floating-point operations a second of a device's products of matrices, mean of
    the ranks"""
    library: str = Field("", description="what added up numbers of different ranks")
    transfers: tuple[Transfer, ...] = ()
    trouble: str = Field("", description="why there is nothing, one line")
    log: str = Field("", description="what the ranks printed")

    @property
    def bandwidth(self) -> float:
        """Bytes per second of the largest all-reduce; 0: there was none."""
        return self.transfers[-1].bus_bandwidth(self.world_size) if self.transfers else 0.0


class Finding(Model):
    """The result of one check on some nodes."""

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
    node_reports: tuple[NodeReport, ...]
    trials: tuple[Trial, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(report.node for report in self.node_reports)

    @property
    def probes(self) -> dict[str, Probe]:
        """Node -> what it reported; without the nodes that did not answer."""
        return {report.node: report.probe for report in self.node_reports if report.probe}

    def count(self, level: Level) -> int:
        """How many findings have this level."""
        return sum(finding.level == level for finding in self.findings)

    def place(self, finding: Finding) -> str:
        """Where a finding holds: the nodes' names, or only their number."""
        if len(self.nodes) > 1 and finding.nodes == self.nodes:
            return f"all {len(self.nodes)} nodes"
        if len(finding.nodes) > NAMED_NODES and finding.level in ("ok", "not there"):
            return f"{len(finding.nodes)} of {len(self.nodes)} nodes"
        return ", ".join(finding.nodes)

    def write(self, path: Path) -> None:
        """Write as indented JSON, whole or not at all."""
        write_whole(path, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: Path | str) -> Self | None:
        """Read a diagnosis; None if it is not there, or of another version of reperf."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except (OSError, ValidationError):
            return None


def trial_name(run: Run) -> str:
    """The name of a system and its build: the build, and the system where it uses another's."""
    build = build_of(run)
    return build.id if build.id.partition(".")[0] == run.system else f"{run.system} in {build.id}"


def hosts_seen(partition: str | None) -> list[Host]:
    """The nodes of a partition that the doctor saw last; none if it last looked elsewhere."""
    diagnosis = Diagnosis.read(DIAGNOSIS)
    if diagnosis is None or not diagnosis.on_cluster or diagnosis.partition != partition:
        return []
    return [probe.host for probe in diagnosis.probes.values()]


def matrix_rate(run: Run, node: str, dtype: str) -> float | None:
    """Floating-point operations a second of a device's matrix products, by the same build there.

    None where the doctor has not measured it.
    """
    diagnosis = Diagnosis.read(DIAGNOSIS)
    if diagnosis is None or node not in diagnosis.probes:
        return None
    build = build_of(run)
    state = diagnosis.probes[node].environments.get(build.id)
    if state is None or state.recipe_sha256 != build.recipe_digest:
        return None
    wanted = trial_name(run), (node,), run.threads
    for trial in diagnosis.trials:
        if (trial.name, trial.nodes, trial.threads) == wanted:
            return trial.matrix_rates.get(dtype)
    return None
