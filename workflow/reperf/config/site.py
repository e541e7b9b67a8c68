"""Where a report runs: the cluster, what runs container images, what the hardware decides."""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from reperf.config.words import (
    MONTH_IN_SECONDS,
    MOST_DEVICES,
    MOST_NODES,
    Label,
    SystemId,
    Text,
    Topology,
    Whole,
    or_text,
    with_examples,
)
from reperf.systems import BuildKind, LockName, Precision
from reperf.validation import Model
from reperf.values import GRES, MOST_PROCESSES, Number, PlainPath

EngineName = Literal["apptainer", "podman", "docker", "pyxis"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""In the order in which they are preferred where several are there."""


_HOST = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,252}$"
"""A host's name or IPv4 address, after a user and @ if needed. No option of ssh begins like it."""


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("allowed: an absolute path, such as /scratch")
    return path


def _words(command: str) -> str:
    try:
        if shlex.split(command):
            return command
        why = "it is empty"
    except ValueError as error:
        why = str(error).lower()
    raise ValueError(f"{why}; allowed: a command, such as ssh -p 2222")


def gpus_option(gres: str | None, count: int) -> str:
    """The option of Slurm's commands that asks for GPUs on each node, of any kind or of one."""
    return f"--gres={gres}:{count}" if gres else f"--gpus-per-node={count}"


class Cluster(Model, json_schema_extra=with_examples):
    """The cluster that runs the report: Slurm's, or hosts; left out: this machine runs it."""

    nodes: Number = Field(ge=1, le=MOST_NODES)
    """largest number of nodes that a run may use; left out: all `hosts`"""
    devices_per_node: Number = Field(ge=1, le=MOST_DEVICES, description="GPUs per node")
    hosts: tuple[Annotated[str, Field(pattern=_HOST)], ...] = Field((), max_length=MOST_NODES)
    """names of hosts to use instead of Slurm's nodes, this machine first; `remote` and the other
    hosts must know these names"""
    hostfile: Text | None = None
    """a host file of MPI or of a batch system; or a variable that has its path or the names, such
    as $PBS_NODEFILE, $LSB_DJOB_HOSTFILE, $SKYPILOT_NODE_IPS"""
    remote: Annotated[Text, AfterValidator(_words)] = "ssh"
    """the command that runs another command on a host; the host's name is appended, or replaces
    {host}: `ssh -p 2222`, `kubectl exec -i {host} --`"""
    partition: Label | None = Field(None, description="left out: the cluster's default")
    account: Label | None = Field(None, description="left out: the user's default")
    exclusive: bool = Field(True, description="whether a run has its nodes to itself")
    cpus_per_device: Number = Field(1, ge=1, le=MOST_PROCESSES)
    """CPUs to ask for; an exclusive run gets all CPUs of its nodes"""
    memory_mb: Number | None = Field(None, ge=1, le=1_000_000_000)
    """MB of memory to ask for on each node; left out: all of it for an exclusive run, else the
    cluster's default"""
    spare_minutes: Number = Field(5, ge=1, le=MONTH_IN_SECONDS // 60)
    """minutes that Slurm allows a run beyond its `time_limit`"""
    gres: Annotated[str, Field(pattern=GRES)] | None = None
    """Slurm's name of a GPU, for --gres; left out: --gpus-per-node, with GPUs of any type"""
    options: tuple[Text, ...] = Field((), description="further options for sbatch")
    before: tuple[Text, ...] = ()
    """lines of bash that each node runs before a launcher starts there; ranks inherit what they
    set; if a line fails, the run fails"""
    stage: Annotated[PlainPath, AfterValidator(_absolute)] | None = None
    """folder on each node's local disk; a run copies the records that it reads to this folder,
    unless they are already there; left out: runs read the records in their place"""
    variables: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], Text] = Field(
        {}, description="environment variables of every launch, such as NCCL_SOCKET_IFNAME"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_its_hosts(cls, cluster: Any) -> Any:  # noqa: ANN401 - whatever YAML gave
        if not isinstance(cluster, Mapping):
            return cluster
        cluster = dict(cluster)
        if isinstance(cluster.get("hostfile"), str):
            if cluster.get("hosts"):
                raise ValueError("hostfile: got one beside hosts; allowed: either")
            cluster["hosts"] = hosts_in(cluster.pop("hostfile"))
        if isinstance(hosts := cluster.get("hosts"), (list, tuple)) and hosts:
            cluster.setdefault("nodes", len(hosts))
        return cluster

    @model_validator(mode="after")
    def _hosts_suffice(self) -> Self:
        if not self.hosts:
            return self
        if self.nodes > len(self.hosts):
            raise ValueError(f"nodes: got {self.nodes} of {len(self.hosts)} hosts; allowed: fewer")
        if twice := [host for host in self.hosts if self.hosts.count(host) > 1]:
            raise ValueError(f"hosts: {twice[0]} appears twice; allowed: each host once")
        of_slurm = {"partition", "account", "memory_mb", "options", "spare_minutes"}
        of_slurm |= {"gres", "before", "stage"}
        # A report that was written in full gives the defaults, too.
        fields = type(self).model_fields.items()
        left_out = {name for name, field in fields if getattr(self, name) == field.default}
        if given := sorted(of_slurm & self.model_fields_set - left_out):
            raise ValueError(f"{given[0]}: Slurm's, but these are hosts; allowed: none")
        return self

    def of_launch(self) -> dict[str, Any]:
        """The part that decides how fast a run is: if it changes, runs are trained again."""
        variables = dict(sorted(self.variables.items()))  # their order decides nothing
        if self.hosts:
            return {"hosts": True, "variables": variables}
        optional = {
            "gres": self.gres,
            "before": list(self.before),
            "stage": self.stage and str(self.stage),
        }
        # Plans that are older than these keys stay valid.
        return {"variables": variables} | {key: value for key, value in optional.items() if value}

    def reached(self) -> dict[str, Any]:
        """The remote command and the hosts' names; empty for Slurm, which knows both."""
        return {"remote": self.remote, "hosts": self.hosts} if self.hosts else {}


def hosts_in(file: str) -> tuple[str, ...]:
    """The hosts that a host file names, each once: the first word of each line, before a colon.

    Args:
        file: its path; or, after `$`, the name of a variable that holds the path or the lines.
    """
    text, variable = file, file.removeprefix("$")
    if file.startswith("$"):
        text = os.environ.get(variable, "")
        if not text.strip():
            raise ValueError(f"hostfile: ${variable} is not set here; allowed: a file, or `hosts`")
    if "\n" not in text.strip() and (not file.startswith("$") or Path(text).is_file()):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise ValueError(f"hostfile: {text}: cannot be read: {why}") from None
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    hosts = tuple(dict.fromkeys(words[0].partition(":")[0] for words in lines if words))
    if not hosts:
        raise ValueError(f"hostfile: {file} names no host; allowed: a host a line")
    return hosts


class Engine(Model, json_schema_extra=with_examples):
    """What runs container images."""

    engine: EngineName | None = None
    """left out: the first of these that this machine has"""
    options: tuple[Text, ...] = ()
    """further options for the engine's `run` or `exec`"""


class Container(Model):
    """The container that a run trains in, with everything that decides it."""

    engine: EngineName
    image: Text = Field(description="a reference into a registry, or a file or folder")
    options: tuple[Text, ...] = ()

    def __str__(self) -> str:
        """As a message names it."""
        return " ".join((self.image, "in", self.engine, *self.options))


class SiteEnvironment(Model, json_schema_extra=with_examples):
    """An existing environment, with a system's framework in it."""

    python: PlainPath | None = None
    """path of its Python, or folder of a venv or conda prefix; left out: the Python on the PATH
    after `modules` and `before`"""
    modules: tuple[Text, ...] = Field((), description="modules for `module load`, in this order")
    before: Text | None = None
    """a line of bash that runs after `modules`, before Python starts"""

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


SiteEnvironmentOrPath = Annotated[SiteEnvironment, or_text("python", SiteEnvironment)]


class Hardware(Model):
    """What the hardware decides: which builds run there, and in which precisions."""

    locks: dict[SystemId, LockName] = Field({})
    """the lock that a system uses, where its first does not run there"""
    ways: dict[SystemId, BuildKind] = Field({})
    """where a system gets its framework, if its preferred way does not run there"""
    unfit: dict[SystemId, dict[BuildKind, Text]] = Field({})
    """systems that do not run there: from a lock or an image, and why"""
    lacking: dict[SystemId, dict[Precision, Text]] = Field({})
    """precisions in which a system cannot train there, and why"""
    topologies: dict[Topology, Text] = Field({})
    """topologies that this machine is too small for, and why"""
    shared: dict[Topology, Whole] = Field({})
    """topologies whose devices share this machine's CPUs, and how many these are"""
