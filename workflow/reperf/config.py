"""What a report holds: the one definition of the configuration.

The parse-time check, the JSON Schema and the table in docs/configuration.md are all made from
these models.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from reperf.errors import ReperfError
from reperf.faults import first_fault
from reperf.systems import WORKLOADS, Input, Precision, System, load_systems

RECORD_FORMATS = ("tfrecord", "ofrecord", "recordio")
NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
TOPOLOGY = re.compile(r"([1-9][0-9]{0,4})n([1-9][0-9]{0,3})g")

LONGEST_NAME = 100
"""Two names and a suffix are one file name, which may have 255 bytes."""
LONGEST_TEXT = 1000
"""All that a run's launch is told goes into one argument of a command, which may have 128 kB."""
MOST_TEXTS = 50
LONGEST_PATH = 4095
LONGEST_STEP = 255
"""Bytes of a path, and of a name in it, that Linux opens."""
MOST_RUNS = 100_000
"""Ten thousand are planned in ten seconds."""
MOST_SUITES = MOST_SOURCES = 1000
MOST_ENTRIES = 200
"""Several times the systems with all of their variants."""
MOST_NODES, MOST_DEVICES = 99_999, 9_999
"""What a topology can name."""
MOST_PARTS = 100_000
"""Their names have five digits."""
MOST_PROCESSES = 1024
"""Processes or threads that one machine starts."""
MOST_ITERATIONS = 10_000_000
MOST_SAMPLES = 10_000_000
"""Per device and iteration."""
LARGEST_IMAGE = 8192
"""Pixels: one such sample takes 800 MB in fp32."""
LARGEST_SEED = 2_000_000_000
"""The frameworks take 31 bits, and repeats and ranks are added."""
MONTH_IN_SECONDS = 30 * 24 * 3600

# Control characters, surrogates, direction marks, line and paragraph ends.
_UNPRINTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError("allowed: small letters, digits, - and ., a letter or digit first")
    return text


def _line(text: str) -> str:
    if not text.strip() or any(unicodedata.category(one) in _UNPRINTED for one in text):
        raise ValueError("allowed: one line of printed characters")
    return text


def _path(path: Path) -> Path:
    _line(str(path))
    if set(str(path)) & set("{}"):  # Snakemake would look for the wildcard
        raise ValueError("allowed: names without { and }")
    parts = [len(part.encode()) for part in path.parts]
    if max(parts, default=0) > LONGEST_STEP or len(str(path).encode()) > LONGEST_PATH:
        raise ValueError(
            f"allowed: up to {LONGEST_PATH} bytes, and {LONGEST_STEP} between two slashes"
        )
    return path


def _ends_with_a_name(path: Path) -> Path:
    if path.name in ("", ".."):
        raise ValueError("allowed: a path that ends with the name of a file or folder")
    return path


def _topology(text: str) -> str:
    if not TOPOLOGY.fullmatch(text):
        raise ValueError(
            "allowed: <nodes>n<devices per node>g, such as 2n8g, "
            f"up to {MOST_NODES}n{MOST_DEVICES}g"
        )
    return text


def _known_workload(workload: str) -> str:
    if workload not in WORKLOADS:
        raise ValueError(f"allowed: {', '.join(WORKLOADS)}")
    return workload


def _known_system(system: str) -> str:
    if system not in load_systems():
        raise ValueError(f"allowed: {', '.join(load_systems())}")
    return system


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{name} is there twice; allowed: each once")
    return names


Topology = Annotated[
    str,
    AfterValidator(_topology),
    WithJsonSchema({"type": "string", "pattern": f"^{TOPOLOGY.pattern}$"}),
]
Name = Annotated[
    str,
    Field(max_length=LONGEST_NAME),
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$"}),
]
Whole = Annotated[int, Field(ge=0, le=10**15)]  # all that a table holds, and more than any run has
Label = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_line)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_line)]
Texts = Annotated[tuple[Text, ...], Field(max_length=MOST_TEXTS)]
PlainPath = Annotated[Path, AfterValidator(_path)]
Number = Annotated[int, Strict()]  # YAML's `yes` is none, nor is "3"
Topologies = Annotated[
    tuple[Topology, ...], Field(min_length=1, max_length=1000), AfterValidator(_distinct)
]
Workload = Annotated[
    str,
    AfterValidator(_known_workload),
    WithJsonSchema({"type": "string", "enum": list(WORKLOADS)}),
]
SystemId = Annotated[str, AfterValidator(_known_system)]


def topology_shape(topology: str) -> tuple[int, int]:
    """Split a topology such as "2n8g" into (number of nodes, devices per node)."""
    nodes, devices = TOPOLOGY.fullmatch(topology).groups()
    return int(nodes), int(devices)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Window(_Model):
    """The measured iterations."""

    warmup: Number = Field(20, ge=0, le=MOST_ITERATIONS, description="iterations before the window")
    measured: Number = Field(100, ge=1, le=MOST_ITERATIONS, description="iterations in the window")

    @property
    def first(self) -> int:
        """The iteration whose end starts the clock."""
        return self.warmup

    @property
    def last(self) -> int:
        """The iteration whose end stops the clock."""
        return self.warmup + self.measured


class Data(_Model):
    """The data set that suites with real input train on."""

    name: Name = Field("embedded", description="folder name under data/")
    images: PlainPath | None = Field(
        None,
        description="folder that holds train/<synset>/*.JPEG; left out, the embedded set is made",
    )
    parts: Number = Field(
        8, ge=1, le=MOST_PARTS, description="record files; must divide by every world size"
    )
    workers: Number = Field(2, ge=1, le=MOST_PROCESSES, description="processes that convert")
    seed: Number = Field(1, ge=0, le=LARGEST_SEED, description="seed of the shuffle")


class Container(_Model):
    """What a run's launchers are wrapped in on a cluster."""

    engine: Literal["apptainer", "pyxis", "bubblewrap"] = Field(description="what runs it")
    image: Text = Field(description="as the engine names it; bubblewrap takes an unpacked folder")
    options: Texts = Field((), description="more options of the engine")


class Cluster(_Model):
    """The Slurm cluster that runs the report; left out, this machine runs it."""

    nodes: Number = Field(ge=1, le=MOST_NODES, description="nodes that one run may use")
    devices_per_node: Number = Field(ge=1, le=MOST_DEVICES, description="GPUs a node")
    partition: Label | None = Field(None, description="left out: the cluster's default")
    account: Label | None = Field(None, description="left out: the user's default")
    exclusive: bool = Field(True, description="a run shares its nodes with nobody")
    cpus_per_device: Number = Field(
        1,
        ge=1,
        le=MOST_PROCESSES,
        description="CPUs to ask for; an exclusive run gets all that its nodes have",
    )
    memory_mb: Number | None = Field(
        None,
        ge=1,
        le=1_000_000_000,
        description="memory to ask for on each node; left out: all of it for an exclusive run, "
        "else the cluster's default",
    )
    spare_minutes: Number = Field(
        5,
        ge=1,
        le=MONTH_IN_SECONDS // 60,
        description="how long Slurm's time limit is above `time_limit`",
    )
    options: Texts = Field((), description='more options of sbatch, "--qos=high"')
    container: Container | None = Field(None, description="left out: no container")
    variables: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], Text] = Field(
        {},
        max_length=MOST_TEXTS,
        description="environment variables of every launch, such as NCCL_SOCKET_IFNAME",
    )

    def of_launch(self) -> dict[str, Any]:
        """What of it decides how fast a run is, so that a change trains again."""
        return self.model_dump(include={"container", "variables"})


class Entry(_Model):
    """One system in a suite, with what it is asked to do differently there."""

    system: SystemId = Field(description="folder name under workflow/systems/")
    variant: str | None = Field(None, description="one of the system's variants")
    batch_size: Number | None = Field(
        None, ge=1, le=MOST_SAMPLES, description="per device, instead of the suite's"
    )

    @field_validator("variant")
    @classmethod
    def _known_variant(cls, variant: str | None, info: ValidationInfo) -> str | None:
        system = load_systems().get(info.data.get("system"))
        if variant is not None and system and variant not in system.variants:
            allowed = ", ".join(system.variants) or "none"
            raise ValueError(f"allowed: {allowed}")
        return variant

    @property
    def id(self) -> str:
        """The entry's name in paths and tables: "system" or "system+variant"."""
        return _entry_id(self.system, self.variant)


def _entry_id(system: str, variant: str | None) -> str:
    return system + (f"+{variant}" if variant else "")


def _from_name(entry: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"system": entry} if isinstance(entry, str) else entry


EntryOrName = Annotated[Entry, BeforeValidator(_from_name, json_schema_input_type=str | Entry)]


def _chosen(systems: Any) -> Any:  # noqa: ANN401 - raw YAML
    if systems == "all":
        return list(load_systems())
    return [systems] if isinstance(systems, str) else systems


class LogSource(_Model):
    """Logs that are there already, whoever made them."""

    path: Annotated[PlainPath, AfterValidator(_ends_with_a_name)] = Field(
        description=".zip, .tar or .tar.gz, a folder of logs, or one log"
    )
    system: Name | None = Field(None, description="whose logs; left out: the log format's")
    variant: Label | None = Field(None, description="what that system was asked to do differently")
    topology: Topology | None = Field(
        None, description="left out: the logs, their run records or their paths say it"
    )
    format: Label | None = Field(
        None, description="as in docs/log-formats.md; left out: found from the content"
    )
    method: Literal["window", "published"] = Field(
        "window", description="the window rule, or what the format's published extractor does"
    )
    window: Window | None = Field(None, description="instead of the report's")

    @property
    def id(self) -> str:
        """The source's name in tables: that of its file or folder."""
        return self.path.name


def _from_path(source: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"path": source} if isinstance(source, str) else source


def _from_one(sources: Any) -> Any:  # noqa: ANN401 - raw YAML
    return [sources] if isinstance(sources, str | Mapping) else sources


class Suite(_Model):
    """One table and one pair of plots of the report."""

    name: Name = Field(description="folder name under results/suites/, and the figures' name")
    workload: Workload = Field(description="what is trained")
    precision: Precision = Field(description="fp32, or mixed precision (amp)")
    sources: Annotated[
        tuple[Annotated[LogSource, BeforeValidator(_from_path)], ...],
        BeforeValidator(_from_one, json_schema_input_type=str | LogSource | list[str | LogSource]),
    ] = Field(
        (),
        alias="from",
        max_length=MOST_SOURCES,
        description="logs to measure instead of runs, or beside them",
    )
    batch_size: Number | None = Field(
        None,
        ge=1,
        le=MOST_SAMPLES,
        validate_default=True,
        description="samples per device and iteration; only suites with `from` may leave it out",
    )
    entries: tuple[EntryOrName, ...] = Field(
        (),
        alias="systems",
        max_length=MOST_ENTRIES,
        validate_default=True,
        description="what is run: a system's name is enough; only suites with `from` may run none",
    )
    input: Input = Field("records", description="where the samples come from")
    image_size: Number = Field(
        224, ge=32, le=LARGEST_IMAGE, description="height and width after the crop, pixels"
    )
    topologies: Topologies | None = Field(None, description="instead of the report's")
    repeats: Number | None = Field(None, ge=1, le=MOST_RUNS, description="instead of the report's")

    @field_validator("sources")
    @classmethod
    def _distinct_sources(cls, sources: tuple[LogSource, ...]) -> tuple[LogSource, ...]:
        _distinct(tuple(source.id for source in sources))
        return sources

    @field_validator("batch_size")
    @classmethod
    def _batch_size_is_known(cls, batch_size: int | None, info: ValidationInfo) -> int | None:
        if batch_size is None and not info.data.get("sources"):
            raise PydanticCustomError("missing", "Field required")
        return batch_size

    @field_validator("entries")
    @classmethod
    def _something_is_measured(
        cls, entries: tuple[Entry, ...], info: ValidationInfo
    ) -> tuple[Entry, ...]:
        if not entries and not info.data.get("sources"):
            raise PydanticCustomError("too_short", "No items")
        for entry in entries:
            if entry.batch_size is None and info.data.get("batch_size", 1) is None:
                raise ValueError(f"{entry.id} has no batch_size; allowed: its own or the suite's")
        _distinct(tuple(entry.id for entry in entries))
        return entries

    @model_validator(mode="after")
    def _no_run_has_two_names(self) -> Self:
        sizes = {entry.id: entry.batch_size or self.batch_size for entry in self.entries}
        for entry in self.entries:
            if entry.variant is None:
                continue
            variant = load_systems()[entry.system].variants[entry.variant]
            if why := variant.why_idle(self.workload, self.precision, self.input):
                raise ValueError(
                    f"systems.{entry.id}: the variant changes nothing here: {why}; "
                    "allowed: to leave the variant out"
                )
            if variant.usual and sizes.get(entry.system) == sizes[entry.id]:
                raise ValueError(
                    f"systems.{entry.id}: is what {entry.system} does without a variant; "
                    "allowed: one of the two"
                )
        return self


class Run(_Model):
    """One repeat of one system on one topology of one suite, with everything that decides it."""

    suite: str
    system: str
    variant: str | None
    workload: Workload
    precision: Precision
    batch_size: Whole
    topology: Topology
    repeat: Whole
    iterations: Whole
    print_every: Whole
    image_size: Whole
    input: str = Field(description="a record format, folder or synthetic")
    data: str | None = Field(description="folder of the samples, None when synthetic")
    device: Literal["cpu", "cuda"]
    threads: Whole = Field(description="CPU threads per device")
    seed: Whole

    @property
    def entry(self) -> str:
        """The entry's name in paths and tables."""
        return _entry_id(self.system, self.variant)

    @property
    def nodes(self) -> int:
        return topology_shape(self.topology)[0]

    @property
    def devices_per_node(self) -> int:
        return topology_shape(self.topology)[1]

    @property
    def world_size(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def global_batch(self) -> int:
        return self.world_size * self.batch_size

    @property
    def identity(self) -> dict[str, str | int | None]:
        """What names the run's cell in the tables, see reperf.tables.IDENTITY."""
        return {
            "suite": self.suite,
            "system": self.system,
            "workload": self.workload,
            "precision": self.precision,
            "variant": self.variant,
            "batch_size_per_device": self.batch_size,
            "topology": self.topology,
            "num_nodes": self.nodes,
            "devices_per_node": self.devices_per_node,
        }

    @property
    def folder(self) -> Path:
        """Where the run's log and record lie, relative to the working folder."""
        return Path("results/runs", self.suite, self.entry, self.topology, str(self.repeat))

    def differences(self, planned: Self) -> str:
        """What of a recorded run is not as planned, each with both values; "" if all is."""
        return "; ".join(
            f"{name} is {mine} by the run record, {asked} by the configuration"
            for (name, mine), (_, asked) in zip(self, planned, strict=True)
            if mine != asked
        )


class Cell(_Model):
    """The runs of one entry on one topology of one suite, before they have run."""

    runs: tuple[Run, ...]
    unsupported: str | None = Field(description="why the cell cannot run at all; None if it can")


class Report(_Model):
    """The whole configuration file."""

    title: Text = Field("Training benchmark", description="heading of the report")
    topologies: Topologies = Field(("1n1g",), description="nodes x devices per node")
    repeats: Number = Field(7, ge=1, le=MOST_RUNS, description="runs per cell")
    iterations: Number = Field(
        120, ge=1, le=MOST_ITERATIONS, description="training iterations per run"
    )
    window: Window = Field(Window(), description="the measured iterations")
    print_every: Number = Field(
        20, ge=1, le=MOST_ITERATIONS, description="iterations between two log lines"
    )
    seed: Number = Field(1, ge=0, le=LARGEST_SEED, description="repeat k trains with seed + k - 1")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto: GPUs where the machine holds enough of them, else CPU"
    )
    threads_per_device: Number = Field(
        1, ge=1, le=MOST_PROCESSES, description="CPU threads of one training process"
    )
    time_limit: Number = Field(
        1800, ge=1, le=MONTH_IN_SECONDS, description="seconds that one run may take"
    )
    data: Data = Field(Data(), description="what suites with real input train on")
    cluster: Cluster | None = Field(None, description="the Slurm cluster; left out: this machine")
    systems: Annotated[
        tuple[EntryOrName, ...],
        BeforeValidator(_chosen, json_schema_input_type=str | list[str | Entry]),
    ] = Field(
        (),
        max_length=MOST_ENTRIES,
        description="run in every suite that runs any, instead of those that it names; "
        "`all` is every system",
    )
    suites: tuple[Suite, ...] = Field(
        min_length=1, max_length=MOST_SUITES, description="a table and two plots each"
    )

    @model_validator(mode="before")
    @classmethod
    def _systems_of_suites(cls, config: Any) -> Any:  # noqa: ANN401 - raw YAML
        match config:
            case {"systems": systems, "suites": [*suites]} if systems:
                return dict(config) | {
                    "suites": [
                        dict(suite) | {"systems": _chosen(systems)}
                        if isinstance(suite, Mapping) and suite.get("systems")
                        else suite
                        for suite in suites
                    ]
                }
        return config

    @model_validator(mode="after")
    def _window_fits(self) -> Self:
        if self.window.last > self.iterations:
            raise ValueError(
                f"window: ends at iteration {self.window.last}, after the last of "
                f"{self.iterations} iterations; allowed: warmup + measured <= iterations"
            )
        for name, edge in (("warmup", self.window.first), ("warmup + measured", self.window.last)):
            if edge % self.print_every:
                raise ValueError(
                    f"window: {name} is {edge}, which is not printed; allowed: multiples of "
                    f"print_every ({self.print_every})"
                )
        return self

    @model_validator(mode="after")
    def _runs_can_be_planned(self) -> Self:
        runs = sum(
            len(suite.entries) * len(self.topologies_of(suite)) * (suite.repeats or self.repeats)
            for suite in self.suites
        )
        if runs > MOST_RUNS:
            raise ValueError(
                f"{runs} runs in all, by its systems, topologies and repeats; "
                f"allowed: up to {MOST_RUNS}"
            )
        return self

    @model_validator(mode="after")
    def _parts_divide(self) -> Self:
        reading = [suite for suite in self.suites if suite.entries and suite.input == "records"]
        for suite in reading:
            for topology in self.topologies_of(suite):
                world_size = prod(topology_shape(topology))
                if self.data.parts % world_size:
                    raise ValueError(
                        f"data.parts: {self.data.parts} record files for the {world_size} devices "
                        f"of {topology} in suite {suite.name}; allowed: multiples of {world_size}"
                    )
        return self

    @field_validator("suites")
    @classmethod
    def _distinct_suites(cls, suites: tuple[Suite, ...]) -> tuple[Suite, ...]:
        _distinct(tuple(suite.name for suite in suites))
        return suites

    def suite(self, name: str) -> Suite:
        """The suite called `name`."""
        return next(suite for suite in self.suites if suite.name == name)

    def alone(self, name: str) -> Self:
        """The report of one suite and no other, with what this machine decided in it."""
        return self.model_copy(
            update={"suites": (self.suite(name),), "device": self.resolved_device}
        )

    def topologies_of(self, suite: Suite) -> tuple[str, ...]:
        """The topologies on which a suite runs; none if it only measures logs."""
        return (suite.topologies or self.topologies) if suite.entries else ()

    @cached_property
    def resolved_device(self) -> Literal["cpu", "cuda"]:
        """What the runs train on: decided once for the report, so that its cells compare."""
        from reperf.machine import choose_device  # noqa: PLC0415 - asks the hardware

        return choose_device(self)

    def cells(self, suite: Suite) -> Iterator[Cell]:
        """The cells of a suite, in the order of its table."""
        for entry, topology in product(suite.entries, self.topologies_of(suite)):
            yield Cell(
                runs=tuple(
                    self._run(suite, entry, topology, repeat)
                    for repeat in range(1, (suite.repeats or self.repeats) + 1)
                ),
                unsupported=self._why_not(suite, entry),
            )

    def runs(self, suite: Suite) -> list[Run]:
        """The runs of a suite that can run."""
        return [run for cell in self.cells(suite) if not cell.unsupported for run in cell.runs]

    def left_out(self) -> str:
        """One line that names what the report asks for and nothing can train; "" if all can."""
        why: dict[str, set[str]] = {}
        for suite in self.suites:
            for entry in suite.entries:
                if reason := self._why_not(suite, entry):
                    why.setdefault(reason, set()).add(entry.system)
        return "; ".join(f"{reason}: {', '.join(sorted(ids))}" for reason, ids in why.items())

    def _why_not(self, suite: Suite, entry: Entry) -> str | None:
        return load_systems()[entry.system].why_not(
            suite.workload, suite.precision, self.resolved_device, entry.variant
        )

    def run(self, suite: str, entry: str, topology: str, repeat: int | str) -> Run:
        """The one run that its path names."""
        found = self.suite(suite)
        chosen = next(item for item in found.entries if item.id == entry)
        return self._run(found, chosen, topology, int(repeat))

    def _run(self, suite: Suite, entry: Entry, topology: str, repeat: int) -> Run:
        system = load_systems()[entry.system]
        source = system.reads[0] if suite.input == "records" and system.reads else suite.input
        return Run(
            suite=suite.name,
            system=entry.system,
            variant=entry.variant,
            workload=suite.workload,
            precision=suite.precision,
            batch_size=entry.batch_size or suite.batch_size,
            topology=topology,
            repeat=repeat,
            iterations=self.iterations,
            print_every=self.print_every,
            image_size=suite.image_size,
            input=source,
            data=self.data_folder(source),
            device=self.resolved_device,
            threads=self.threads_per_device,
            seed=self.seed + repeat - 1,
        )

    def data_folder(self, source: str) -> str | None:
        """The folder that a run reads: record parts, the images, or None when synthetic."""
        if source == "synthetic":
            return None
        if source == "folder":
            return str(self.image_folder)
        return f"data/{self.data.name}/{source}"

    @property
    def image_folder(self) -> Path:
        """The folder that holds train/<synset>/*.JPEG."""
        return self.data.images or Path("data", self.data.name, "images")


def load_report(config: Mapping[str, Any], source: str = "configuration") -> Report:
    """Check a configuration that YAML gave.

    Args:
        config: the parsed file.
        source: the file's name, for the message.

    Raises:
        ReperfError: one line with the key, the value and what is allowed.
    """
    try:
        return Report.model_validate(config)
    except ValidationError as error:
        raise ReperfError(f"{source}: {first_fault(error, Report, config)}") from None


__all__ = [
    "Cell",
    "Entry",
    "LogSource",
    "Report",
    "Run",
    "Suite",
    "System",
    "Window",
    "load_report",
]
