"""The systems under test, one folder each.

The system.yaml in its folder under workflow/systems/ describes a system, and names the models that
it trains. No rule and no library module names a system.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cache, cached_property
from itertools import permutations, product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, PrivateAttr, model_validator
from trainers.contract.precision import AMP

from reperf.building.code import closure, digest_of_code
from reperf.layout import ROOT
from reperf.systems.gpu_rules import ARCHITECTURE, DRIVER
from reperf.systems.workloads import load_workloads
from reperf.validation import Model, checked
from reperf.values import Name
from reperf.yaml_files import read_yaml_file

Device = Literal["cpu", "cuda"]
BuildKind = Literal["lock", "image", "environment"]
LockName = Literal["cpu", "cuda", "volta"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "amp"]
Input = Literal["records", "folder", "synthetic"]
Parallelism = Literal["data", "pipeline", "shard", "tensor"]
"""How devices share the training: by samples, by layers, by weights that are spread until they are
needed, or by parts of each layer."""
FOLDER = "folder"  # the input of images as they lie, not converted to records

SYSTEMS = ROOT / "workflow" / "systems"
TRAINERS = ROOT / "workflow" / "trainers"
ENVIRONMENTS = ROOT / "envs"
PROGRAM = TRAINERS / "train.py"  # what trains by a system's model and its framework's backend
SERVER = TRAINERS / "serve.py"  # what serves parameters as a system's part `server` does
MODULE_STARTER = TRAINERS / "module.py"  # what runs a launcher that is named by `-m`
OWN_TIME = {"--own-time", "--together"}
"""The flag by which each trainer keeps its own time, and what trainers in archives may call it."""
PART = "^[a-z0-9_.]+\\.[A-Za-z0-9_]+$"
"""The name of what a framework's folder of trainers holds: module.Name."""


class Pipelines(Model):
    """What it asks of the replicas of stages, and of micro-batches."""

    replicas: Literal["any", "as the first or one", "equal"] = "any"
    """how many each stage may have"""
    micro_batches: Literal["none", "any", "at least stages", "multiple of stages"] | None = None
    """how many it can cut a batch into, by default as many as there are stages, or a multiple of
    that; left out: any number"""
    updates: Literal["after each iteration", "after each batch"] = "after each iteration"
    """when a stage changes its weights"""
    stages_of_a_device: int = Field(1, ge=1, description="of how many each device has a replica")

    def why_not(
        self, pipeline: Sequence[int], micro_batches: int | None, batch_size: int | None
    ) -> str | None:
        """What it lacks to train by a pipeline, such as "stages 2 + 1"; None if nothing.

        Args:
            pipeline: the replicas of each stage.
            micro_batches: None: as many as there are stages, or a multiple of it.
            batch_size: None: not known yet.
        """
        allowed = {"equal": {pipeline[0]}, "as the first or one": {pipeline[0], 1}}
        if not set(pipeline) <= allowed.get(self.replicas, set(pipeline)):
            shown = " + ".join(map(str, pipeline))
            return f"stages {shown}; allowed: {_REPLICAS[self.replicas]}"
        if self.micro_batches is None:
            return None
        if self.micro_batches == "none":
            return f"{micro_batches} micro-batches; allowed: none" if micro_batches else None
        count, stages = micro_batches or len(pipeline), len(pipeline)
        fits = {"at least stages": count >= stages, "multiple of stages": count % stages == 0}
        if not fits.get(self.micro_batches, True):
            wanted = self.micro_batches.replace("stages", str(stages))
            return f"{count} micro-batches; allowed: {wanted}"
        if batch_size is not None and batch_size % count:
            return f"{count} micro-batches of a batch of {batch_size}; allowed: what divides it"
        return None


_REPLICAS = {
    "equal": "as many replicas of each",
    "as the first or one": "of each as many replicas as of the first, or one",
}


class Variant(Model):
    """What a system can be asked to do differently."""

    about: str
    flags: tuple[str, ...] = ()
    devices: tuple[Device, ...] = Field(("cpu", "cuda"), description="on which it is available")
    precisions: tuple[Precision, ...] = get_args(Precision)
    """in which it changes something; left out: all"""
    inputs: tuple[Input, ...] = Field(get_args(Input), description="likewise")
    compiles: bool = False
    """whether it compiles where it trains, by the machine's compiler"""
    unsupported: str | None = None
    """why nothing that can be installed does it, although a report printed it"""
    excludes: tuple[str, ...] = ()
    """variants that do not go with it; named by one of the two"""
    excludes_under: dict[Parallelism, tuple[str, ...]] = Field({})
    """likewise, where devices share the training like that"""
    pipelines: Pipelines | None = None
    """by which it can train; left out: as the system"""

    def why_idle(self, precision: Precision, read: Input) -> str | None:
        """Why a run with the variant would equal one without, or None if it would not."""
        for value, wanted in ((precision, self.precisions), (read, self.inputs)):
            if value not in wanted:
                return f"it is for {', '.join(wanted)}, not for {value}"
        return None


class Capability(Model):
    """What a system can do for one workload."""

    model: str | None = Field(None, pattern=PART)
    """what makes the model, in the framework's folder of trainers, such as resnet50.ResNet50; left
    out: the system does not train it yet, or by a program of its own"""
    batches: str | None = Field(None, pattern=PART)
    """what reads its data, likewise; left out: it reads none"""
    parts: dict[str, Annotated[str, Field(pattern=PART)]] = Field({})
    """what it brings in place of what the framework's backend has, likewise"""
    precisions: dict[Device, tuple[Precision, ...]] | None = None
    """left out: the system's"""
    precisions_under: dict[Parallelism, tuple[Precision, ...]] = Field({})
    """likewise, for a kind of parallel training; left out: all of its precisions"""
    reads: tuple[str, ...] = ()
    """record formats, the preferred one first; folder: images as they lie there"""
    variants: tuple[str, ...] = Field((), description="the system's variants that apply to it")
    parallel: tuple[Parallelism, ...] = ("data",)
    """how devices can share the training"""


class Needs(Model):
    """What a build's GPU code asks of a machine; left out where no source says it."""

    driver: str | None = Field(None, pattern=DRIVER)
    """the least NVIDIA driver, such as 580.65.06"""
    architectures: tuple[Annotated[str, Field(pattern=ARCHITECTURE)], ...] = ()
    """what all of it is compiled for: sm_90 is binary, compute_90 is PTX"""


class Lock(Needs):
    """A lock, `envs/<id>.txt` for CPUs or such as `envs/<id>.cuda.txt`, and what it is for."""

    python: str = Field(description='version of its interpreter, such as "3.11"')
    packages: tuple[str, ...]
    """what the trainer imports; the lock fixes their versions and dependencies"""


class Image(Needs):
    """A container image in a registry: envs/<id>.image.yaml."""

    image: str = Field(description="with its registry, without a tag")
    tag: str
    digest: str | None = Field(None, pattern="^sha256:[0-9a-f]{64}$")

    @property
    def reference(self) -> str:
        """As registries name it; the digest, where it is known, decides what it stands for."""
        return f"{self.image}:{self.tag}" + (f"@{self.digest}" if self.digest else "")


class Shared(Model):
    """What systems have in common if they do not say otherwise: a framework.yaml."""

    launch: tuple[str, ...] = ()
    variants: dict[Name, Variant] = Field({})
    """of a system, those that its workloads name"""


class System(Model):
    """One implementation under test: its system.yaml."""

    id: str
    title: str
    framework: str = Field(description="the framework's package")
    backend: str = "backend"
    """module of the framework's folder of trainers that trains"""
    about: str
    colour: str | None = Field(
        None, pattern="^#[0-9a-f]{6}$", description="in figures; left out, the id decides"
    )
    builds: dict[Device, tuple[BuildKind, ...]] = Field({})
    """how the framework is had on a device, the preferred way first; left out: as the system that
    it shares with"""
    locks: dict[LockName, Lock] = Field({})
    """one for CPUs, and for GPUs the preferred one first"""
    shares: str | None = None
    """the system in whose locks' environments it runs; left out, its own"""
    pipelines: Pipelines = Pipelines()
    """by which it can train, if it trains by any"""
    launch: tuple[str, ...] = ()
    """arguments of the build's Python that start the framework's own launcher; {placeholders} as in
    docs/add-a-system.md"""
    serve: tuple[str, ...] = ()
    """likewise, what starts a node's parameter servers, without which the system does not train;
    left out: it has none"""
    workloads: dict[str, Capability] = Field({})
    precisions: dict[Device, tuple[Precision, ...]] = Field({})
    """in which it trains; amp is what it is there: fp16 on GPUs, bf16 on CPUs"""
    accumulates: bool = False
    """whether it adds up the gradients of several batches before an update"""
    shares_compiled: bool = False
    """whether repeats on a CPU take up what one of them has compiled"""
    processors: dict[Precision, tuple[str, ...]] = Field({})
    """what a precision needs of a CPU, as /proc/cpuinfo names it, such as avx512bw; left out: as
    the system that it shares with, else nothing"""
    variants: dict[Name, Variant] = Field({})
    _code: dict[str, list[Path]] = PrivateAttr(default_factory=dict)
    _digests: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        def check(key: str, names: Iterable[str], known: Iterable[str]) -> None:
            allowed = list(known)
            for name in names:
                if name not in allowed:
                    listed = ", ".join(allowed) or "none"
                    raise ValueError(f"{key}: got {name!r}; allowed: {listed}")

        for name, variant in self.variants.items():
            others = [each for each in self.variants if each != name]
            check(f"variants.{name}.excludes", variant.excludes, others)
            for kind, excluded in variant.excludes_under.items():
                check(f"variants.{name}.excludes_under.{kind}", excluded, others)
        check("workloads", self.workloads, load_workloads())
        for workload, can in self.workloads.items():
            check(f"workloads.{workload}.variants", can.variants, self.variants)
        return self

    @cached_property
    def folder(self) -> Path:
        return SYSTEMS / self.id

    @property
    def environments(self) -> Path:
        """Where its locks lie."""
        return ENVIRONMENTS

    @property
    def files(self) -> list[Path]:
        """Where it is described."""
        return [self.folder / "system.yaml", *_shared_files(self.framework)]

    def trainer(self, workload: str) -> Path:
        """The program that trains a workload: the system's own, or the one of all systems."""
        program = self.folder / f"{workload}.py"
        return program if program.exists() else PROGRAM

    def server(self, workload: str) -> Path:
        """The program of a parameter server: the system's own, or the one of all systems."""
        program = self.folder / f"{workload}.server.py"
        return program if program.exists() else SERVER

    def trains(self, workload: str) -> bool:
        """Whether there is a program that trains a workload."""
        can = self.workloads.get(workload)
        return can is not None and bool(can.model or (self.folder / f"{workload}.py").exists())

    def named(self, workload: str) -> dict[str, str]:
        """The options with which the program of all systems trains this one: flag -> value.

        The values name modules, and what they hold, within trainers/frameworks.
        """
        can = self.workloads[workload]
        if can.model is None:
            return {}
        names = {"backend": f"{self.framework}.{self.backend}", "model": can.model}
        return names | ({"batches": can.batches} if can.batches else {}) | can.parts

    def ways(self, device: Device) -> tuple[BuildKind, ...]:
        """The kinds of builds that the framework has on a device, the preferred one first."""
        ways = (self.builds or self.host.builds).get(device, ())
        return ways if self.image else tuple(way for way in ways if way != "image")

    def locks_for(self, device: Device) -> tuple[LockName, ...]:
        """The locks for a device, the preferred one first."""
        return tuple(name for name in self.host.locks if (name == "cpu") == (device == "cpu"))

    @property
    def host(self) -> "System":
        """The system whose locks it uses."""
        return load_systems()[self.shares] if self.shares else self

    @cached_property
    def image(self) -> Image | None:
        """The system's container image, if envs/ names one."""
        path = self.environments / f"{self.id}.image.yaml"
        return checked(Image, read_yaml_file(path), path) if path.exists() else None

    def code(self, workload: str) -> list[Path]:
        """The files that decide how the system trains a workload: programs and their imports."""
        if workload not in self._code:
            words = (*self.launch, *self.serve)
            launchers = [file for part in words for file in _module(part)]
            if "-m" in words:
                launchers.append(MODULE_STARTER)
            servers = [self.server(workload)] if self.serve else []
            named = self._files_of_options(workload)
            roots = [self.trainer(workload), *servers, *named, *launchers]
            self._code[workload] = sorted(closure(roots, _module))
        return self._code[workload]

    def _files_of_options(self, workload: str) -> list[Path]:
        """The files of modules that options name, which no import shows, there or not."""
        modules = self.modules(workload)
        if not modules:
            return []
        recipe = f"{TRAINERS.name}.recipes.{load_workloads()[workload].recipe_name}"
        files = []
        for name in [*modules, recipe]:
            missing = TRAINERS.parent.joinpath(*name.split(".")).with_suffix(".py")
            files += _module(name) or [missing]
        return files

    def modules(self, workload: str) -> list[str]:
        """The framework's modules that options name."""
        options = self.named(workload)
        if not options:
            return []
        folder = f"{TRAINERS.name}.frameworks.{self.framework}"
        modules = {name.rpartition(".")[0] for key, name in options.items() if key != "backend"}
        return [f"{folder}.{name}" for name in sorted({"before", self.backend, *modules})]

    def code_digest(self, workload: str) -> str:
        """The SHA-256 of the code of these files, without comments."""
        if workload not in self._digests:
            self._digests[workload] = digest_of_code(self.code(workload), ROOT)
        return self._digests[workload]

    def varied(self, variant: str | None) -> tuple[Variant, ...]:
        """The variants of an entry, which names several as "compile+no-clip"."""
        return tuple(self.variants[name] for name in variant.split("+")) if variant else ()

    def precisions_of(self, workload: str, device: Device) -> tuple[Precision, ...]:
        """In which precisions it trains a workload on a device, by their own names."""
        can = self.workloads[workload].precisions
        return (self.precisions if can is None else can).get(device, ())

    def keeps_own_time(self, variant: str | None) -> bool:
        """Whether each trainer of an entry keeps its own time."""
        return any(OWN_TIME.intersection(chosen.flags) for chosen in self.varied(variant))

    def why_not_together(self, names: Sequence[str]) -> str | None:
        """Why an entry cannot have several variants, or None if it can."""
        for name, other in permutations(names, 2):
            if other in self.variants[name].excludes:
                return f"{name} and {other} exclude each other"
        return None

    def why_not(
        self,
        workload: str,
        precision: str,
        device: Device,
        variant: str | None = None,
        *,
        parallel: Sequence[Parallelism] = (),
        pipeline: Sequence[int] = (),
        micro_batches: int | None = None,
        batch_size: int | None = None,
        accumulation: int = 1,
        servers: bool = False,
        build: BuildKind | None = None,
        read: Input = "synthetic",
    ) -> str | None:
        """Why the system cannot train this at all, or None if it can."""
        if not self.trains(workload):
            return f"{self.title} has no program for {workload}"
        can = self.workloads[workload]
        named = variant.split("+") if variant else ()
        computed_in = AMP[device] if precision == "amp" else precision
        trains_in = self.precisions_of(workload, device)
        lacks = {
            f"{kind}-parallel training of {workload}": kind not in can.parallel
            for kind in parallel or ("data",)
        }
        lacks |= {
            f"{kind}-parallel training in {precision}": computed_in not in trained
            for kind, trained in can.precisions_under.items()
            if kind in parallel
        }
        lacks |= {
            "gradient accumulation": accumulation > 1
            and not (self.accumulates and {*parallel}.isdisjoint(("shard", "tensor"))),
            "parameter servers": servers and not self.serve,
            f"{precision} training on {device}": computed_in not in trains_in,
            "reader of image folders": read == FOLDER and FOLDER not in can.reads,
        } | {f"{name} on {device}": device not in self.variants[name].devices for name in named}
        if lacking := next((what for what, is_so in lacks.items() if is_so), None):
            return f"{self.title} has no {lacking}"
        reasons = [self.variants[name].unsupported for name in named]
        reasons += [
            f"{name} and {other} exclude each other under {kind}-parallel training"
            for name, other, kind in product(named, named, parallel)
            if other in self.variants[name].excludes_under.get(kind, ())
        ]
        if reason := next(filter(None, reasons), None):
            return reason
        if pipeline and (
            reason := self._why_no_pipeline(workload, named, pipeline, micro_batches, batch_size)
        ):
            return reason
        if build not in (None, "environment", *self.ways(device)):
            allowed = " or ".join(self.ways(device)) or "none"
            return f"{self.title} has no {build} for {device}; allowed: {allowed}"
        return None

    def _why_no_pipeline(
        self,
        workload: str,
        variants: Sequence[str],
        pipeline: Sequence[int],
        micro_batches: int | None,
        batch_size: int | None,
    ) -> str | None:
        by_variant = {
            name: able for name in variants if (able := self.variants[name].pipelines) is not None
        }
        pipelines = next(iter(by_variant.values()), self.pipelines)
        if lacking := pipelines.why_not(pipeline, micro_batches, batch_size):
            return f"{', '.join([self.title, *by_variant])} has no {lacking}"
        stages = len(pipeline) * pipelines.stages_of_a_device
        if stages not in (cuts := load_workloads()[workload].stages):
            allowed = " or ".join(map(str, sorted(cuts))) or "no"
            return f"{workload} is cut into {allowed} stages, not {stages}"
        return None

    def why_not_on_processor(self, precision: Precision, flags: Collection[str]) -> str | None:
        """Why a CPU, by its flags in /proc/cpuinfo, cannot train in a precision; None if it can."""
        computed_in: Any = AMP["cpu"] if precision == "amp" else precision
        needed = (self.processors or self.host.processors).get(computed_in, ())
        lacking = ", ".join(flag for flag in needed if flag not in flags)
        if not flags or not lacking:
            return None
        return f"{self.framework} needs a CPU with {lacking} for {precision}"


@cache
def load_systems() -> dict[str, System]:
    """Every system, by its folder's name."""
    return {path.parent.name: _read(path) for path in sorted(SYSTEMS.glob("*/system.yaml"))}


def _read(path: Path) -> System:
    described = read_yaml_file(path)
    if isinstance(described, dict):
        described["id"] = path.parent.name
        for file in _shared_files(str(described.get("framework"))):
            _take_over(checked(Shared, read_yaml_file(file), file), described)
    return checked(System, described, path)


def _shared_files(framework: str) -> list[Path]:
    """What says what systems of a framework have in common, and then those of all frameworks."""
    folder = TRAINERS / "frameworks"
    files = [folder / framework / "framework.yaml", folder / "framework.yaml"]
    return [file for file in files if file.exists()]


def _take_over(shared: Shared, described: dict[str, Any]) -> None:
    """Add what a system.yaml, which may hold anything, does not say itself."""
    if shared.launch:
        described.setdefault("launch", shared.launch)
    own, workloads = described.setdefault("variants", {}), described.get("workloads")
    if not isinstance(own, dict) or not isinstance(workloads, dict):
        return
    able = [can.get("variants") or () for can in workloads.values() if isinstance(can, dict)]
    for name, variant in shared.variants.items():
        if any(name in names for names in able):
            own.setdefault(name, variant)


@cache
def _module(name: str) -> list[Path]:
    """The files of a module of the trainers, as Python runs them to import it."""
    package, *inside = name.split(".")
    if package != TRAINERS.name:
        return []
    stem = TRAINERS.joinpath(*inside)
    source = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    if not source.exists():
        return []
    return [source, *(_module(".".join([package, *inside[:-1]])) if inside else [])]
