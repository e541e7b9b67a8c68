"""The run record: what was run, where, and how it ended."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, JsonValue

from reperf.config import Run
from reperf.errors import ReperfError
from reperf.files import whole_file
from reperf.host import Environment, Host
from reperf.validation import Described, checked, shown
from reperf.values import Status

VERSION = "1.0"  # of run.json and batch.json; a later 1.x may have more fields, with defaults
LARGEST_RECORD = 1 << 24  # bytes; a larger file is not read

FINAL = ("ok", "oom", "unsupported")  # the ends of a run that another try would not change

LONGEST_REASON = 500  # characters

NOT_COMPARED = "the trainers' last weights: each keeps its own time, and lacks others' last updates"
"""What a record says of trainers that do not wait for each other."""


class Power(Described):
    """What NVML measured in the window: the run's GPUs on the nodes named here, together."""

    mean_watts: float
    energy_joules: float
    mean_utilisation_percent: float
    mean_mhz: float | None = Field(None, description="mean clock of their multiprocessors")
    throttled: float | None = None
    """share of the window in which heat, a power brake or the board's hardware held a GPU's clock
    down; null: unknown"""
    capped: float | None = None
    """likewise, the GPUs' power limit, at which large GPUs usually run"""
    nodes: tuple[str, ...] = Field((), description="the metered nodes; empty: the first node")
    first: int | None = None
    """iteration whose end begins the window; None: the whole run was metered"""
    last: int | None = Field(None, description="iteration whose end ends the window")


BESIDE = 0.05  # the share of the CPUs' time beyond which a cell's machine was busy
UNUSABLE = 0.25
"""The share of the CPUs' time beyond which other work leaves a number that nobody can use."""


class Load(Described):
    """What else the machine of rank 0 did, beside the run."""

    average: float = Field(description="processes that ran or wanted to, mean of the minute before")
    before: float | None = None
    """share of its CPUs' time that other work took right before; null: unknown"""
    during: float | None = None
    """likewise while it ran; null: unknown, as where a service or another node starts the
    processes"""
    gpu_processes: int | None = None
    """processes that computed on its GPUs right before; null: no GPUs, unknown"""
    stolen: float | None = None
    """share of its CPUs' time that other virtual machines took while it ran, a part of `during`"""
    throttled: float | None = None
    """share of that time in which heat, or the CPU quota of a control group, held its CPUs back;
    null: unknown"""
    mhz: float | None = None
    """clock of its fastest CPU, mean over the run; null: unknown"""


class ComputedIn(Described):
    """The data types in which a model was trained, as the trainer said."""

    compute: str = Field(description="of convolutions and matrix products")
    weights: str = Field(description="of the weights, and of their updates")
    loss_scale: float | Literal["dynamic"] | None = None
    """what the loss was multiplied by; null: nothing"""

    def __str__(self) -> str:
        weights = f", {self.weights} weights" if self.weights != self.compute else ""
        scale = self.loss_scale
        scaled = f"{scale:g}" if isinstance(scale, float) else scale
        return self.compute + weights + (f", loss scale {scaled}" if scale is not None else "")


class SetRead(Described):
    """The data set that a run read."""

    name: str = Field(description="as the configuration calls it")
    counted: str = Field(description="what its samples are: images, sequences, ...")
    samples: int
    bytes: int = Field(description="of all its record files, or images")
    times: str = ""
    """of a folder of many images: SHA-256 of the times at which they were written, which is not
    part of the digest"""


class LastHeard(Described):
    """The last sign of life of one rank, or of one parameter server."""

    rank: int
    iteration: int | None
    seconds: float = Field(description="after the run's start")


class Sealed(Described, extra="forbid"):
    """A JSON file of ours that shows whether it has changed since it was written."""

    KIND: ClassVar[str]
    """What messages call it."""

    record_version: Literal["1.0"] = Field("1.0", description="of the file's format")

    def write(self, path: Path) -> None:
        """Write it as indented JSON with its seal, whole or not at all."""
        content = self.model_dump(mode="json")
        with whole_file(path) as stream:
            json.dump(content | {"seal": _seal(content)}, stream, indent=2, ensure_ascii=False)
            stream.write("\n")

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read such a file; refused if it is missing, of another kind or version, or edited."""
        try:
            with Path(path).open("rb") as stream:
                return cls.parse(stream.read(LARGEST_RECORD + 1), str(path))
        except OSError as error:
            raise ReperfError(f"{path}: not {cls.KIND}: {error.strerror or error}") from None

    @classmethod
    def parse(cls, text: bytes, name: str) -> Self:
        """Read a file's bytes, as `read` does; `name` is the file's, for the message."""
        if len(text) > LARGEST_RECORD:
            raise ReperfError(
                f"{name}: not {cls.KIND}: larger than {LARGEST_RECORD >> 20} MiB, which none is"
            )
        try:
            content: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ReperfError(f"{name}: not {cls.KIND}: {error}") from None
        seal = None
        if isinstance(content, dict):
            seal = content.pop("seal", None)
            version = content.get("record_version", VERSION)
            if version != VERSION:
                raise ReperfError(
                    f"{name}: {cls.KIND} of version {shown(version)}; this reperf reads {VERSION}: "
                    "make it again, or remove the file to measure the log without it"
                )
        record = checked(cls, content, f"{name}: not {cls.KIND}")
        if seal != _seal(content):
            raise ReperfError(f"{name}: has changed since it was written")
        return record


class BatchTrial(Described):
    """A short run that tried a batch size, as its own record tells it."""

    batch_size: int = Field(description="samples per device")
    status: Status = Field(description="ok: it trains")
    reason: str = ""
    peak_memory_bytes: tuple[int, ...] = Field((), description="per device, as the trainer said")
    log: str = Field(description="its path; its record lies beside it")
    log_sha256: str


class LargestBatch(Sealed):
    """batch.json: the largest batch that trains, and the trials that found it."""

    KIND = "the largest batch"

    status: Status = Field(description="ok: found; oom: not even the smallest fits")
    reason: str = Field("", description="why there is none, one line")
    batch_size: int = Field(description="samples per device; where there is none, the last tried")
    multiple: int = Field(description="what all batch sizes that were tried are multiples of")
    memory_bytes: int | None
    """what the trials could fill: a device's memory, or the limit of a process"""
    trials: tuple[BatchTrial, ...] = Field(description="in their order")
    run: dict[str, JsonValue] = Field(description="what was tried, without the batch size")
    plan: str = Field("", description="SHA-256 of the search's plan, as in a run's record")
    trainer: str = Field(description="SHA-256 of all that decides how the system trains")
    image: str | None = Field(description="the digest of the image that it trained in")
    gpus: tuple[str, ...] = Field((), description="the models of the GPUs that the first rank saw")


PeakMemory = Literal["allocated", "in use", "resident", "address space"]
"""What a peak is: what the framework has allocated on a GPU, or, where it does not say, all that
is in use there; on a CPU what the process holds in memory or, under a limit, its address space."""


Setting = bool | int | str  # a variable's value, a switch's, or what else was changed


class RunRecord(Sealed):
    """run.json: written at the end of every run, however it ended."""

    KIND = "a run record"

    status: Status
    reason: str = Field("", description="why the status is not ok, one line")
    run: Run
    plan: str = Field("", description="SHA-256 of the plan's content, all but its `aside`")
    call: str = Field("", description="the call of Snakemake: host, process, time; empty: none")
    attempt: int = Field(description="1 for the first try of a call")
    ended_well_before: int = Field(
        0, description="tries of the same plan that had ended well, and were trained again"
    )
    command: tuple[str, ...]
    servers_command: tuple[str, ...] = ()
    """what started the parameter servers; empty: there are none"""
    variables: dict[str, str] = Field(description="environment variables that the launch set")
    inherited: dict[str, str] = Field({})
    """those of the shell that reached the ranks too, and that a framework, NCCL, CUDA, a math
    library, the loader or the allocator reads; empty in an image"""
    environment: Environment
    trainer: str = ""
    """SHA-256 of the trainer's code, without comments and docstrings"""
    cluster: dict[str, Any] | None = None
    """the settings of its cluster for the launch; null on this machine"""
    slurm_job: str = Field("", description="the number of the job that it ran in; empty: none")
    data_sha256: str | None = None
    """of the data set's manifest, or of the names and sizes of a folder's images, with their
    contents if these have at most 64 MiB; null: synthetic"""
    data_set: SetRead | None = Field(None, description="what was read; null: likewise")
    git_commit: str | None
    git_dirty: bool | None
    host: Host
    nodes: tuple[str, ...] = Field((), description="their names, that of rank 0 first")
    started: str = Field(description="ISO 8601, UTC")
    ended: str
    seconds: float
    exit_code: int | None
    seconds_to_print: float | None = None
    """until a rank had printed an iteration; null: none did, or unknown"""
    last_heard: tuple[LastHeard, ...] = ()
    servers_heard: tuple[LastHeard, ...] = Field((), description="likewise, of parameter servers")
    peak_memory_bytes: tuple[int, ...] = Field((), description="per device, as the trainer said")
    peak_memory_is: PeakMemory | None = None
    """what these bytes are; null: nobody said"""
    computed_in: ComputedIn | None = None
    matrix_rate: float | None = None
    """floating-point operations a second of one device's matrix products in the type that the run
    computed in, as the doctor measured them here; null: it did not"""
    loader_threads: int | None = None
    """threads per device that read and decode, in the trainer's own process, as it said"""
    settings: dict[str, Setting] = Field({})
    """what the trainer set within its process, as it said: environment variables, switches of the
    framework, and what else it changed, in words"""
    rank_seconds_alone: tuple[float | None, ...] = ()
    """seconds that each rank takes for the gradients of a batch while it waits for no other, as
    measured after the last iteration; null: its trainer cannot tell"""
    rank_seconds_waited: tuple[float | None, ...] = ()
    """seconds that each rank has waited for batches in the whole run"""
    power: Power | None = None
    load: Load | None = Field(None, description="what else the machine did; null: nobody looked")
    largest: LargestBatch | None = None
    """how the batch size was found; null: the configuration names it"""
    not_compared: str = ""
    """what was not compared between ranks, and why; empty: all was"""
    log_sha256: str

    @property
    def span(self) -> tuple[float, float] | None:
        """The Unix times of the run's start and end; None if it does not say both."""
        try:
            return _unix(self.started), _unix(self.ended)
        except (ValueError, OverflowError, OSError):
            return None

    @property
    def commit(self) -> str:
        """The commit of reperf, with a "+" if there were changes on top; "" if unknown."""
        return f"{self.git_commit or ''}{'+' if self.git_dirty else ''}"


def with_found_batch(run: Run) -> Run:
    """A run with the batch size that was found for it by its record, if it was searched for."""
    if isinstance(run.batch_size, int):
        return run
    return run.with_batch(RunRecord.read(run.record).run.samples_per_device)


def _unix(time: str) -> float:
    read = datetime.fromisoformat(time)
    return read.replace(tzinfo=read.tzinfo or UTC).timestamp()


def records_of(runs: Iterable[Run]) -> Iterator[RunRecord]:
    """The records of planned runs in the working folder.

    A record that cannot be read, or is of another run, is skipped: measuring has refused it.
    """
    for run in runs:
        with suppress(ReperfError):
            record = RunRecord.read(run.record)
            if not record.run.differences(run):
                yield record


def _seal(content: dict[str, Any]) -> str:
    """The SHA-256 of a file's content; of the model's it is not, which may gain fields later."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()
