"""A whole report, and how a configuration file becomes one."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from reperf.config.data import EMBEDDED, Data
from reperf.config.run import Cell, Run, runs_of
from reperf.config.site import (
    ENGINES,
    Cluster,
    Container,
    Engine,
    Hardware,
    SiteEnvironment,
    SiteEnvironmentOrPath,
)
from reperf.config.suite import Entry, EntryOrName, Measured, Suite, chosen_systems, listed
from reperf.config.words import (
    LARGEST,
    MOST_BYTES,
    MOST_RUNS,
    SystemId,
    Text,
    distinct,
    topology_shape,
    with_examples,
)
from reperf.data.kinds import KINDS
from reperf.layout import FIGURE_KINDS, UNSCALED_KINDS
from reperf.suggestions import did_you_mean
from reperf.systems import BuildKind, Device, load_systems
from reperf.systems.workloads import load_workloads
from reperf.validation import checked
from reperf.values import LARGEST_SEED, MOST_PROCESSES, Number, PlainPath

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # a SHA-256 in hexadecimal digits


class Report(Measured, json_schema_extra=with_examples):
    """The whole configuration file."""

    title: Text = Field("Training benchmark", description="heading of the report")
    seed: Number = Field(1, ge=0, le=LARGEST_SEED, description="repeat k trains with seed + k - 1")
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: GPUs if the machine has enough of them, else the CPU"""
    threads_per_device: Number = Field(1, ge=1, le=MOST_PROCESSES)
    """CPU threads per training process"""
    on_busy: Literal["go", "wait"] = Field(
        "go",
        exclude=True,  # it decides when runs begin, and does not change them
        description="what a call does if this machine is busy before the first run: go: it warns "
        "and continues; wait: it waits until other work has ended",
    )
    share_cpus: bool = False
    """whether devices share all CPUs of this machine where it has too few for a topology; such
    cells have no speedup; left out: the machine is too small for it"""
    loader_threads: Number | None = Field(None, ge=1, le=MOST_PROCESSES)
    """CPU threads per device that read and decode; left out: on the CPU `threads_per_device`, on
    GPUs a node's CPUs over its GPUs, at most 16"""
    memory_limit: Number | None = Field(None, ge=1, le=MOST_BYTES)
    """bytes of address space that each training process on a CPU may take; `batch_size: largest`
    needs it there; left out: no limit"""
    data: Annotated[
        tuple[Data, ...],
        BeforeValidator(listed, json_schema_input_type=Data | list[Data]),
        AfterValidator(distinct),
    ] = Field(
        EMBEDDED,
        validate_default=True,
        min_length=1,
        description="what suites with real input train on: one data set, or several; "
        "left out: the embedded set of each kind",
    )
    build: BuildKind | None = None
    """how systems get their framework: from a lock, from a container image, or from an existing
    environment; left out: each system's preference for the device, see docs/systems.md"""
    images: dict[SystemId, Text] = Field({})
    """images by system, a reference or a file each, instead of those that
    `envs/<system>.image.yaml` names; a system named here is run from its image, unless `build` says
    lock"""
    environment: SiteEnvironmentOrPath | None = None
    """an existing environment in which systems train; see docs/environments.md"""
    environments: dict[SystemId, SiteEnvironmentOrPath] = Field({})
    """a system's environment, instead of `environment`"""
    container: Engine = Field(Engine(), description="what runs images, here or on the cluster")
    cluster: Cluster | None = None
    """Slurm's nodes, or hosts; left out: this machine"""
    systems: Annotated[
        tuple[EntryOrName, ...],
        BeforeValidator(chosen_systems, json_schema_input_type=str | list[str | Entry]),
    ] = Field(
        (),
        description="systems for every suite that runs any, instead of those it names; "
        "`all`: every system",
    )
    suites: Annotated[tuple[Suite, ...], AfterValidator(distinct)] = Field(min_length=1)
    """one table and two plots each"""
    baseline: PlainPath | None = None
    """folder, archive or measurements.csv of an earlier report; the page compares this report with
    it, see docs/comparing.md"""
    reproduces: Digest | None = None
    """SHA-256 of the archive whose numbers this report measures again; `reperf reproduce` writes
    it"""
    hardware: Hardware = Hardware()
    """what the machine decides; reperf writes it, and replaces what is written here"""
    other_hardware: Hardware = Hardware()
    """the same, for suites whose `device` is another than the report's"""

    @model_validator(mode="before")
    @classmethod
    def _said_once_for_all_suites(cls, config: Any) -> Any:  # noqa: ANN401 - raw YAML
        """Give each suite the report's values for what it leaves out."""
        match config:
            case {"suites": [*suites]}:
                shared = {key: config[key] for key in Measured.model_fields if key in config}
                systems = (
                    {"systems": chosen_systems(config["systems"])} if config.get("systems") else {}
                )
                return dict(config) | {
                    "suites": [
                        # Of a default, pydantic would say the field's name, not the key.
                        {"systems": ()}
                        | shared
                        | dict(suite)
                        | (systems if suite.get("systems") else {})
                        if isinstance(suite, Mapping)
                        else suite
                        for suite in suites
                    ]
                }
        return config

    @model_validator(mode="after")
    def _runs_can_be_planned(self) -> Self:
        runs = sum(
            len(suite.entries) * len(suite.topologies) * suite.repeats for suite in self.suites
        )
        if runs > MOST_RUNS:
            raise ValueError(
                f"{runs} runs in all, from systems x topologies x repeats; "
                f"allowed: up to {MOST_RUNS}"
            )
        if self.share_cpus and self.cluster:
            raise ValueError(
                "share_cpus: got true for a cluster, where Slurm gives each device its CPUs; "
                "allowed: false, or no `cluster`"
            )
        return self

    @model_validator(mode="after")
    def _data_sets_fit(self) -> Self:
        """Check that each suite that reads has a data set of its kind, in enough parts."""
        for suite in self.suites:
            kind = load_workloads()[suite.workload].data
            of_kind = [data.name for data in self.data if data.kind == kind]
            allowed = ", ".join(of_kind) or f"a data set of {kind}, which `data` lacks"
            if suite.data is not None and suite.data not in of_kind:
                other = {data.name: data.kind for data in self.data}.get(suite.data)
                what = f"holds {other}, {suite.workload} needs {kind}" if other else "is not there"
                raise ValueError(
                    f"suites.{suite.name}.data: {suite.data} {what}; allowed: {allowed}"
                    f"{did_you_mean(suite.data, of_kind)}"
                )
            data = self.data_of(suite)
            if suite.input == "folder" and not KINDS[kind].holds_folders:
                holds = " or ".join(name for name, other in KINDS.items() if other.holds_folders)
                raise ValueError(
                    f"suites.{suite.name}.input: folder holds {holds}, {suite.workload} needs "
                    f"{kind}; allowed: records, synthetic"
                )
            if data is None or suite.input != "records" or not suite.entries:
                continue
            _check_fit(suite, data)
            for entry, topology in product(suite.entries, suite.topologies_of_runs):
                devices, parallel = prod(topology_shape(topology)), entry.parallel
                if parallel and parallel.why_not_on(devices):
                    continue
                readers = parallel.readers(devices) if parallel else devices
                those = f"readers of {entry.id} on" if parallel else "devices of"
                if data.parts % readers:
                    raise ValueError(
                        f"data.{data.name}.parts: {data.parts} record files for the {readers} "
                        f"{those} {topology} in suite {suite.name}; allowed: multiples of {readers}"
                    )
        return self

    def suite(self, name: str) -> Suite:
        """The suite called `name`."""
        return next(suite for suite in self.suites if suite.name == name)

    def alone(self, name: str) -> Self:
        """The report with this suite only, whose device is the report's then."""
        suite = self.suite(name)
        return self._part(suite.device or self.device, (suite,))

    def of_each_device(self) -> Iterator[Self]:
        """The report in parts: the suites that train on one device, which is the part's own."""
        return map(self.on, dict.fromkeys(map(self.device_of, self.suites)))

    def on(self, device: Device) -> Self:
        """The part of the report that trains on a device; it may have no suites."""
        suites = tuple(suite for suite in self.suites if self.device_of(suite) == device)
        return self._part(device, suites)

    def _part(self, device: str, suites: tuple[Suite, ...]) -> Self:
        return self.model_copy(
            update={
                "suites": suites,
                "device": device,
                "memory_limit": self._memory_limit_on(device),
                "hardware": self._hardware_for(device),
                "other_hardware": Hardware(),
                "baseline": None,  # an archive is of its suite alone
            }
        )

    def _memory_limit_on(self, device: str) -> int | None:
        """That of the CPUs; where there are GPUs alone, it is kept for `check_memory` to refuse."""
        beside_cpus = any((suite.device or self.device) == "cpu" for suite in self.suites)
        return None if device == "cuda" and beside_cpus else self.memory_limit

    def device_of(self, suite: Suite) -> Device:
        """What a suite's runs train on; ValueError where it is the report's, which is undecided."""
        return suite.device or self.resolved_device

    def _hardware_for(self, device: str) -> Hardware:
        return self.hardware if device == self.device else self.other_hardware

    def hardware_of(self, suite: Suite) -> Hardware:
        """What the machine decides for a suite's runs."""
        return self._hardware_for(suite.device or self.device)

    def data_of(self, suite: Suite) -> Data | None:
        """The data set that a suite reads; None where the report has none of its kind."""
        kind = load_workloads()[suite.workload].data
        of_kind = (data for data in self.data if data.kind == kind)
        return next((data for data in of_kind if suite.data in (None, data.name)), None)

    @property
    def resolved_device(self) -> Device:
        """The report's own device; ValueError while it is auto, see reperf.machine.resolve."""
        if self.device == "auto":
            raise ValueError("the device is still auto: reperf.machine.resolve decides it")
        return self.device

    @property
    def largest_shape(self) -> tuple[int, int]:
        """The most nodes of any run, and the most devices per node of any run."""
        topologies = [name for suite in self.suites for name in self.topologies_of(suite)]
        nodes, devices = zip((1, 1), *map(topology_shape, topologies), strict=True)
        return max(nodes), max(devices)

    @property
    def slurm(self) -> Cluster | None:
        """The cluster, if Slurm runs it."""
        return None if self.cluster is None or self.cluster.hosts else self.cluster

    @property
    def cpus_per_device(self) -> int:
        """The CPUs that a run asks the cluster for, for each of its devices."""
        configured = self.cluster.cpus_per_device if self.cluster else 1
        return max(configured, self.threads_per_device, self.loader_threads or 1)

    @property
    def asked(self) -> list[tuple[Suite, str]]:
        """Each suite that runs, with each of its topologies."""
        return [(suite, topology) for suite in self.suites for topology in suite.topologies_of_runs]

    def topologies_of(self, suite: Suite) -> tuple[str, ...]:
        """The topologies on which a suite's runs are made: those that there is room for."""
        small = self.hardware_of(suite).topologies
        return tuple(name for name in suite.topologies_of_runs if name not in small)

    def figure_kinds(self, suite: Suite) -> tuple[str, ...]:
        """The kinds of a suite's figures; only measuring tells the topologies of others' logs."""
        scales = suite.sources or len(self.topologies_of(suite)) > 1
        return FIGURE_KINDS if scales else UNSCALED_KINDS

    def widest_topology(self, suite: Suite) -> str:
        """The topology of a suite's runs with the most devices, of these with the most nodes."""
        return max(
            self.topologies_of(suite),
            key=lambda name: (prod(topology_shape(name)), topology_shape(name)),
        )

    def cells(self, suite: Suite) -> Iterator[Cell]:
        """The cells of a suite, in the order of its table."""
        for entry, topology in product(suite.entries, suite.topologies_of_runs):
            first = self._run(suite, entry, topology)
            repeats = (first.again(repeat) for repeat in range(2, suite.repeats + 1))
            too_large = self.hardware_of(suite).topologies.get(topology)
            why = too_large or self._why_not(suite, entry, topology)
            yield Cell(runs=(first, *repeats), unsupported=why)

    def runs(self, suite: Suite) -> list[Run]:
        """A suite's runs, without those of unsupported cells."""
        return runs_of(self.cells(suite))

    def run_of_each_entry(self, *, own_builds: bool = True) -> Iterator[Run]:
        """The first run of each entry that can train; `own_builds`: also of those that name one."""
        for suite in self.suites:
            for topology, entry in product(self.topologies_of(suite)[:1], suite.entries):
                if (own_builds or not entry.own_build) and not self._why_not(suite, entry):
                    yield self._run(suite, entry, topology)

    def left_out(self) -> str:
        """One line that names what the report asks for but cannot be trained; "" if all can."""
        why: dict[str, set[str]] = {}
        for suite in self.suites:
            for entry in suite.entries:
                if reason := self._why_not(suite, entry):
                    why.setdefault(reason, set()).add(entry.system)
        reasons = [f"{reason}: {', '.join(sorted(ids))}" for reason, ids in why.items()]
        small = self.hardware.topologies | self.other_hardware.topologies
        return "; ".join([*dict.fromkeys(small.values()), *reasons])

    def _why_not(self, suite: Suite, entry: Entry, topology: str | None = None) -> str | None:
        """Why an entry cannot train on a topology, or on any; None if it can."""
        build, parallel = self._build_of(suite, entry), entry.parallel
        hardware = self.hardware_of(suite)
        why_undivided = load_workloads()[suite.workload].why_undivided
        size = entry.batch_size or suite.batch_size
        why = load_systems()[entry.system].why_not(
            suite.workload,
            suite.precision,
            self.device_of(suite),
            entry.variant,
            parallel=parallel.kinds if parallel else (),
            pipeline=parallel.pipeline if parallel else (),
            micro_batches=parallel.micro_batches if parallel else None,
            batch_size=size if isinstance(size, int) else None,
            accumulation=entry.accumulation or 1,
            servers=entry.servers is not None,
            build=build,
            read=suite.input,
        )
        return (
            why
            or (parallel and topology and parallel.why_not_on(prod(topology_shape(topology))))
            or (parallel and why_undivided(suite.shape, parallel.shard, parallel.tensor))
            # What an entry's own build can do is known only where a run starts.
            or (None if entry.own_build else hardware.unfit.get(entry.system, {}).get(build))
            or hardware.lacking.get(entry.system, {}).get(suite.precision)
        )

    @model_validator(mode="after")
    def _environments_are_named(self) -> Self:
        for suite, entry in ((one, entry) for one in self.suites for entry in one.entries):
            asked = entry.own_build or entry.build or self.build
            if asked == "environment" and not self._environment_of(entry):
                raise ValueError(
                    f"suites.{suite.name}: {entry.id}: build: got environment, but the report "
                    f"names none for it; allowed: environment, or environments.{entry.system}"
                )
        if both := sorted(self.images.keys() & self.environments.keys()):
            raise ValueError(
                f"environments.{both[0]}: images names it, too; allowed: one of the two, or an "
                f"entry for each build"
            )
        return self

    @property
    def names_environments(self) -> bool:
        """Whether any entry could train in an existing environment."""
        entries = (entry for suite in self.suites for entry in suite.entries)
        return any(map(self._environment_of, entries))

    def _environment_of(self, entry: Entry) -> SiteEnvironment | None:
        return entry.environment or self.environments.get(entry.system) or self.environment

    def _build_of(self, suite: Suite, entry: Entry) -> BuildKind:
        named: BuildKind | None = "image" if entry.system in self.images else None
        if named is None and self._environment_of(entry):
            named = "environment"
        preferred = load_systems()[entry.system].ways(self.device_of(suite))
        fit = named or self.hardware_of(suite).ways.get(entry.system)
        asked = entry.own_build or entry.build or self.build
        return asked or fit or (preferred[0] if preferred else "lock")

    def _container_of(self, suite: Suite, entry: Entry) -> Container | None:
        """What an entry's runs train in; None where they use a lock."""
        if self._build_of(suite, entry) != "image":
            return None
        named = load_systems()[entry.system].image
        return Container(
            # reperf.machine.resolve looks for one on this machine; else it is clusters' usual one.
            engine=self.container.engine or ENGINES[0],
            image=entry.image
            or self.images.get(entry.system)
            or (named.reference if named else "none"),
            options=self.container.options,
        )

    def run(self, suite: str, entry: str, topology: str, repeat: int) -> Run:
        """The run that a path names."""
        of_suite = self.suite(suite)
        of_entry = next(each for each in of_suite.entries if each.id == entry)
        return self._run(of_suite, of_entry, topology).again(repeat)

    def _run(self, suite: Suite, entry: Entry, topology: str) -> Run:
        """The first repeat."""
        can = load_systems()[entry.system].workloads.get(suite.workload)
        read = can.reads[0] if suite.input == "records" and can and can.reads else suite.input
        data, container = self.data_of(suite), self._container_of(suite, entry)
        build, fit_locks = self._build_of(suite, entry), self.hardware_of(suite).locks
        device = self.device_of(suite)
        batch_size = entry.batch_size or suite.batch_size
        together = load_systems()[entry.system].keeps_own_time(entry.variant)
        every = suite.window.lines(suite.print_every) if together else suite.print_every
        return Run(
            suite=suite.name,
            system=entry.system,
            variant=entry.variant,
            workload=suite.workload,
            precision=suite.precision,
            batch_size=batch_size,
            batch_multiple=suite.batch_multiple if batch_size == LARGEST else None,
            accumulation=entry.accumulation or 1,
            topology=topology,
            repeat=1,
            iterations=suite.iterations,
            print_every=every,
            shape=suite.shape,
            parallel=entry.parallel,
            servers=entry.servers,
            together=together,
            input=read,
            data=data and data.folder(read),
            device=device,
            threads=self.threads_per_device,
            shared_cpus=self.hardware_of(suite).shared.get(topology),
            loader_threads=self.loader_threads,
            memory_limit=self._memory_limit_on(device),
            seed=self.seed,
            lock=None if entry.lock or build != "lock" else fit_locks.get(entry.system),
            lock_file=str(entry.lock) if entry.lock else None,
            container=container,
            environment=self._environment_of(entry) if build == "environment" else None,
            label=entry.label,
        )


def load_report(config: Mapping[str, Any], name: str = "configuration") -> Report:
    """A checked configuration; a ReperfError names its file, the key, and what is allowed."""
    return checked(Report, config, name)


def _check_fit(suite: Suite, data: Data) -> None:
    """Refuse a shape that is not the set's that a suite reads, and too small a batch."""
    of_kind = data.of_kind
    for key, value in of_kind.decided_shape().items():
        if suite.shape.get(key, value) != value:
            raise ValueError(
                f"suites.{suite.name}.shape.{key}: got {suite.shape[key]}; "
                f"allowed: {value}, as data.{data.name} has it"
            )
    for key, least in of_kind.least_shape().items():
        if suite.shape[key] < least:
            raise ValueError(
                f"suites.{suite.name}.shape.{key}: got {suite.shape[key]}; "
                f"allowed: {least} or more, which data.{data.name} has"
            )
    least = of_kind.least_batch()
    for entry in suite.entries:
        size = entry.batch_size or suite.batch_size
        if isinstance(size, int) and size < least:
            raise ValueError(
                f"suites.{suite.name}.batch_size: got {size}; allowed: {least} "
                f"or more, which data.{data.name} needs"
            )
