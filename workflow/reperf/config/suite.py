"""What one table of the report holds: the systems that run, and the logs of others."""

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from reperf.config.parallelism import Parallel, Servers
from reperf.config.site import SiteEnvironmentOrPath
from reperf.config.words import (
    MONTH_IN_SECONDS,
    MOST_ACCUMULATED,
    MOST_ITERATIONS,
    MOST_RUNS,
    MOST_SAMPLES,
    BatchSize,
    Label,
    SystemId,
    Text,
    Topologies,
    Topology,
    Workload,
    distinct,
    or_text,
    topology_shape,
    with_examples,
)
from reperf.suggestions import allowed
from reperf.systems import BuildKind, Device, Input, Precision, load_systems
from reperf.systems.workloads import load_workloads
from reperf.validation import Model
from reperf.values import Name, Number, PlainPath

FEWEST_LINES = 50
"""Lines that trainers which keep their own time print in a window: one for each 2 % of it."""


class Window(Model, json_schema_extra=with_examples):
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

    def lines(self, print_every: int) -> int:
        """The iterations between two log lines of trainers that keep their own time.

        Windows begin and end with printed iterations, and should overlap as far as possible: it
        is `print_every`, or its largest divisor that prints FEWEST_LINES in a window; or 1.
        """
        most = min(print_every, max(1, self.measured // FEWEST_LINES))
        return next(every for every in range(most, 0, -1) if print_every % every == 0)

    def check(self, iterations: int, print_every: int) -> None:
        """Refuse, by a ValueError, a window whose ends a run does not print."""
        if self.last > iterations:
            raise ValueError(
                f"window: ends at iteration {self.last}, after the last of "
                f"{iterations} iterations; allowed: warmup + measured <= iterations"
            )
        for name, edge in (("warmup", self.first), ("warmup + measured", self.last)):
            if edge % print_every:
                raise ValueError(
                    f"window: {name} is {edge}, which is not printed; allowed: multiples of "
                    f"print_every ({print_every})"
                )


class Measured(Model):
    """What a report sets for all of its suites, and a suite may override."""

    topologies: Topologies = Field(("1n1g",), description="nodes x devices per node")
    repeats: Number = Field(7, ge=1, le=MOST_RUNS, description="runs per cell")
    iterations: Number = Field(120, ge=1, le=MOST_ITERATIONS)
    """training iterations per run"""
    window: Window = Field(Window(), description="the measured iterations")
    print_every: Number = Field(20, ge=1, le=MOST_ITERATIONS)
    """iterations between two log lines"""
    time_limit: Number = Field(1800, ge=1, le=MONTH_IN_SECONDS)
    """seconds that one run may take"""


def _ends_with_a_name(path: Path) -> Path:
    if path.name in ("", ".."):
        raise ValueError("allowed: a path that ends with the name of a file or folder")
    return path


Variants = Annotated[
    tuple[str, ...],
    BeforeValidator(
        lambda variants: (variants,) if isinstance(variants, str) else variants,
        json_schema_input_type=str | tuple[str, ...],
    ),
]
Accumulation = Annotated[Number, Field(ge=1, le=MOST_ACCUMULATED)]


class Entry(Model, json_schema_extra=with_examples):
    """One system in a suite, and what it does differently there."""

    system: SystemId = Field(description="folder name under workflow/systems/")
    variants: Variants = Field((), description="some of the system's variants, or the name of one")
    batch_size: BatchSize | None = Field(None, description="per device, instead of the suite's")
    accumulation: Accumulation | None = Field(None, description="instead of the suite's")
    build: BuildKind | None = None
    """how it gets its framework; left out: as the report says"""
    lock: PlainPath | None = None
    """this entry's lock: exact versions, as `uv pip compile` writes them"""
    image: Text | None = Field(None, description="this entry's image, as in `images`")
    environment: SiteEnvironmentOrPath | None = None
    """this entry's existing environment"""
    label: Name | None = None
    """name in tables and figures, to distinguish it from the same system in another build"""
    parallel: Parallel | None = None
    """how devices share the training; left out: data parallel"""
    servers: Servers | None = None
    """parameter servers beside the trainers; left out: one a node for a system that trains with
    them, else none"""

    @model_validator(mode="after")
    def _has_one_build(self) -> Self:
        own = [kind for kind in get_args(BuildKind) if getattr(self, kind)]
        if len(own) > 1:
            raise ValueError(f"got {' and '.join(own)}; allowed: only one")
        if own and self.build not in (None, *own):
            raise ValueError(f"build: got {self.build} beside {own[0]}; allowed: without build")
        system = load_systems()[self.system]
        if self.label in system.variants:
            raise ValueError(
                f"label: {self.label} is a variant of {self.system}; allowed: another name"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _with_servers(cls, entry: Any) -> Any:  # noqa: ANN401 - raw YAML
        """Give an entry the servers without which its system does not train."""
        if isinstance(entry, Mapping) and entry.get("servers") is None:
            system = load_systems().get(str(entry.get("system")))
            if system is not None and system.serve:
                entry = {**entry, "servers": {}}
        return entry

    @field_validator("variants")
    @classmethod
    def _known_variants(cls, variants: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Sort them as in system.yaml, so that an entry has a single name."""
        system = load_systems().get(info.data.get("system", ""))
        if system is None:
            return variants
        for name in variants:
            if name not in system.variants:
                known = allowed(name, system.variants)
                raise ValueError(f"{name} is no variant of {system.id}; {known}")
            if variants.count(name) > 1:
                raise ValueError(f"{name} is named twice; allowed: each variant once")
        if why := system.why_not_together(variants):
            raise ValueError(f"{why}; allowed: one of them")
        return tuple(name for name in system.variants if name in variants)

    @property
    def own_build(self) -> BuildKind | None:
        """The kind of the build that it names; None if it names none."""
        return next((kind for kind in get_args(BuildKind) if getattr(self, kind)), None)

    @property
    def variant(self) -> str | None:
        """All of its variants in one name, such as "compile+no-clip"; None without one."""
        return "+".join(self.variants) or None

    @property
    def id(self) -> str:
        """The entry's name in paths and tables."""
        variant = shown_variant(self.variant, self.accumulation, self.label)
        return entry_id(self.system, variant, self.parallel, self.servers)


def shown_variant(
    variant: str | None, accumulation: int | None, label: str | None = None
) -> str | None:
    """What an entry does differently, in paths and tables, such as "compile+accumulation-4".

    It begins with the label of its build; an accumulation of 1 batch is nothing different.
    """
    several = f"accumulation-{accumulation}" if accumulation and accumulation > 1 else None
    return "+".join(filter(None, (label, variant, several))) or None


def entry_id(
    system: str, variant: str | None, parallel: Parallel | None, servers: Servers | None
) -> str:
    """What names an entry in paths and tables: "system" or "system+variant+stages-7-1"."""
    more = [each.name for each in (parallel, servers) if each]
    return "+".join([system, *filter(None, [variant]), *more])


EntryOrName = Annotated[Entry, or_text("system", Entry)]


def chosen_systems(systems: Any) -> Any:  # noqa: ANN401 - raw YAML
    """A list of entries, for `all` and for one name too."""
    if systems in ("all", ["all"]):
        return list(load_systems())
    return [systems] if isinstance(systems, str) else systems


class LogSource(Model, json_schema_extra=with_examples):
    """Logs that exist already, whoever made them."""

    path: Annotated[PlainPath, AfterValidator(_ends_with_a_name)]
    """.zip, .tar or .tar.gz, a folder of logs, or one log"""
    system: Name | None = Field(None, description="the logs' system; left out: the format's")
    variant: Label | None = Field(None, description="what that system did differently")
    topology: Topology | None = None
    """left out: as the logs, their run records or their paths say"""
    format: Label | None = None
    """as in docs/log-formats.md; left out: found from the content"""
    method: Literal["window", "published"] = "window"
    """the window rule, or the method of the format's published extractor"""
    window: Window | None = Field(None, description="instead of the suite's")

    @property
    def id(self) -> str:
        """The source's name in tables: that of its file or folder."""
        return self.path.name


SourceOrPath = Annotated[LogSource, or_text("path", LogSource)]


def listed(items: Any) -> Any:  # noqa: ANN401 - raw YAML
    """A list of items, for a single one too."""
    return [items] if isinstance(items, str | Mapping) else items


class Suite(Measured, json_schema_extra=with_examples):
    """One table and one pair of plots of the report."""

    name: Name = Field(description="folder name under results/suites/, and the figures' name")
    workload: Workload = Field(description="what is trained")
    precision: Precision
    """fp32, tf32, fp16, bf16, fp8; or amp, as published: fp16 on GPUs, bf16 on CPUs"""
    sources: Annotated[
        tuple[SourceOrPath, ...],
        BeforeValidator(listed, json_schema_input_type=str | LogSource | list[str | LogSource]),
        AfterValidator(distinct),
    ] = Field((), alias="from", description="logs to measure instead of runs, or beside them")
    batch_size: BatchSize | None = None
    """samples per device and iteration; `largest`: as many as train, see docs/measuring.md; left
    out: each of `systems` has its own"""
    batch_multiple: Number = Field(8, ge=1, le=MOST_SAMPLES)
    """what the `largest` batch size is a multiple of"""
    accumulation: Accumulation = 1
    """batches of `batch_size` per device whose gradients are added up before each update of the
    weights: all of them are one iteration"""
    entries: tuple[EntryOrName, ...] = Field((), alias="systems")
    """what to run: a system's name is enough; only suites with `from` may run none"""
    input: Input = "records"
    """where the samples come from: converted records; folder, the images as they lie, which few
    systems read; or synthetic, made once and not read at all"""
    device: Device | None = None
    """what its runs train on; left out: as the report says"""
    data: Name | None = None
    """one of the data sets; left out: the first of the workload's kind"""
    shape: dict[str, Number] = Field({}, validate_default=True)
    """of samples and model, with the keys in workflow/workloads/; left out: the usual shape"""
    unit: str | None = Field(None, validate_default=True)
    """what to count: one of the workload's units; left out: its usual one"""
    baseline: Topology | None = None
    """topology that speedup is relative to; left out: the smallest of each series"""

    @property
    def topologies_of_runs(self) -> tuple[str, ...]:
        """The topologies on which the suite runs; none if it only measures logs."""
        return self.topologies if self.entries else ()

    @property
    def shares_model(self) -> bool:
        """Whether devices share the model in some entry, so that the report shows epochs."""
        return any(entry.parallel for entry in self.entries)

    @field_validator("shape", mode="before")
    @classmethod
    def _shape_is_whole(cls, shape: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - raw YAML
        workload = load_workloads().get(info.data.get("workload", ""))
        if workload and isinstance(shape, Mapping):
            return workload.shape_of(shape)
        return shape

    @field_validator("unit")
    @classmethod
    def _unit_is_counted(cls, unit: str | None, info: ValidationInfo) -> str | None:
        workload = load_workloads().get(info.data.get("workload", ""))
        if workload is None:
            return unit
        if unit is not None and unit not in workload.units:
            raise ValueError(allowed(unit, workload.units))
        return unit or workload.usual_unit

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
        suites = {"accumulation": info.data.get("accumulation")}
        entries = tuple(
            entry if entry.accumulation else entry.model_copy(update=suites) for entry in entries
        )
        ids = Counter(entry.id for entry in entries)
        for entry in entries:
            if ids[entry.id] > 1 and any(e.own_build for e in entries if e.id == entry.id):
                raise ValueError(
                    f"{entry.id} appears twice, with different builds; allowed: a different "
                    f"`label` for each"
                )
        return distinct(entries)

    @model_validator(mode="after")
    def _window_and_baseline_fit(self) -> Self:
        if self.entries:  # logs of others are as long as they are, and print when they print
            self.window.check(self.iterations, self.print_every)
        # The topologies of logs are known only when they are measured.
        if self.baseline and not self.sources and self.baseline not in self.topologies:
            raise ValueError(
                f"baseline: {self.baseline} is in no series; allowed: {', '.join(self.topologies)}"
            )
        return self

    @model_validator(mode="after")
    def _variants_change_runs(self) -> Self:
        """Check that each variant applies, so that no run is asked for under two names."""
        for entry in self.entries:
            system = load_systems()[entry.system]
            if self.workload not in system.workloads:
                continue
            of_workload = system.workloads[self.workload].variants
            for name in entry.variants:
                if name not in of_workload:
                    raise ValueError(
                        f"systems.{entry.id}: {name} is no variant for {self.workload}; "
                        f"allowed: {', '.join(of_workload) or 'none'}"
                    )
                if why := system.variants[name].why_idle(self.precision, self.input):
                    raise ValueError(
                        f"systems.{entry.id}: {name} changes nothing here: {why}; "
                        f"allowed: without {name}"
                    )
        return self

    @model_validator(mode="after")
    def _parallel_fits(self) -> Self:
        """Check that an entry's devices are those of a topology."""
        sizes = [prod(topology_shape(topology)) for topology in self.topologies]
        for entry in self.entries:
            reasons = [entry.parallel.why_not_on(size) for size in sizes] if entry.parallel else []
            if reasons and all(reasons):
                raise ValueError(
                    f"systems.{entry.id}.parallel: {reasons[0]}; allowed: a topology that fits"
                )
        return self
