"""One run, with everything that decides it, and the runs that are one cell of a table."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field
from trainers.contract.recipe import AdamW

from reperf.config.parallelism import Parallel, Servers
from reperf.config.site import Container, SiteEnvironment
from reperf.config.suite import entry_id, shown_variant
from reperf.config.words import LARGEST, BatchSize, Topology, Whole, Workload, topology_shape
from reperf.layout import RUN_FOLDER, RUN_LOG, RUN_RECORD
from reperf.systems import LockName, Precision, load_systems
from reperf.systems.workloads import load_workloads, written_shape
from reperf.validation import Model


class Run(Model):
    """One repeat of one system on one topology of one suite, with everything that decides it."""

    suite: str
    system: str
    variant: str | None
    workload: Workload
    precision: Precision
    batch_size: BatchSize
    """samples per device; `largest` in plans, whose readers know what was found"""
    batch_multiple: Whole | None = None
    """the batch size is the largest multiple of this that trains; None: the suite names one"""
    accumulation: Whole = Field(1, description="batches per device in an iteration")
    topology: Topology
    repeat: Whole
    iterations: Whole
    print_every: Whole
    shape: dict[str, Whole] = Field(description="of samples and model, all keys")
    parallel: Parallel | None = None
    """how devices share the training; None: data parallel"""
    servers: Servers | None = Field(None, description="parameter servers beside the trainers")
    together: bool = False
    """whether each trainer keeps its own time, by one of its variants"""
    input: str = Field(description="a record format, folder or synthetic")
    data: str | None = Field(description="folder of the samples, None when synthetic")
    device: Literal["cpu", "cuda"]
    threads: Whole = Field(description="CPU threads per device")
    shared_cpus: Whole | None = None
    """CPUs that all devices share, too few for each to have its own; None: each has its own"""
    loader_threads: Whole | None = None
    """CPU threads per device that read and decode; None: the trainer decides"""
    memory_limit: Whole | None = None
    """bytes of address space of each process; None: no limit"""
    seed: Whole
    lock: LockName | None = None
    """whose environment it trains in, if not in that of the device's first"""
    lock_file: str | None = None
    """the entry's own lock; null: one of the system's locks"""
    container: Container | None = None
    """the image in which it trains; None: an environment, from the system's lock or below"""
    environment: SiteEnvironment | None = None
    """the existing environment; None: reperf builds the environment, or it is an image"""
    label: str | None = Field(None, description="what its build is called beside others")

    @property
    def entry(self) -> str:
        """The entry's name in paths and tables."""
        return entry_id(self.system, self.shown_variant, self.parallel, self.servers)

    @property
    def shown_variant(self) -> str | None:
        """What its entry does differently, in paths and tables."""
        return shown_variant(self.variant, self.accumulation, self.label)

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
    def readers(self) -> int:
        """How many of the ranks read batches of their own."""
        return self.parallel.readers(self.world_size) if self.parallel else self.world_size

    @property
    def servers_in_all(self) -> int:
        """The parameter servers on all nodes."""
        return self.nodes * self.servers.per_node if self.servers else 0

    @property
    def global_batch(self) -> int:
        """Samples per iteration; of one trainer, if each keeps its own time."""
        readers = 1 if self.together else self.readers
        return self.samples_per_device * readers * self.accumulation

    def again(self, repeat: int) -> Self:
        return self.model_copy(update={"repeat": repeat, "seed": self.seed + repeat - 1})

    def with_batch(self, batch_size: int) -> Self:
        return self.model_copy(update={"batch_size": batch_size})

    @property
    def samples_per_device(self) -> int:
        """The batch size, which is known of every run that trains."""
        assert isinstance(self.batch_size, int)
        return self.batch_size

    @property
    def identity(self) -> dict[str, str | int | None]:
        """What names the run's cell in the tables, see reperf.tables.CELL."""
        return {
            "suite": self.suite,
            "system": self.system,
            "workload": self.workload,
            "precision": self.precision,
            "variant": self.shown_variant,
            # Of a cell that cannot run, nobody has searched for it.
            "batch_size_per_device": None if self.batch_size == LARGEST else self.batch_size,
            "topology": self.topology,
            "num_nodes": self.nodes,
            "devices_per_node": self.devices_per_node,
            "parallel": self.parallel.title if self.parallel else None,
            "servers": self.servers.title if self.servers else None,
        }

    @property
    def setting(self) -> dict[str, str]:
        """What else was asked of the run, see reperf.tables.SETTING."""
        read = self.input if self.input in ("folder", "synthetic") else "records"
        return {"input": read, "shape": written_shape(self.shape), "device": self.device}

    @property
    def folder(self) -> Path:
        """Where the run's log and record lie, relative to the working folder."""
        return Path(
            RUN_FOLDER.format(
                suite=self.suite, entry=self.entry, topology=self.topology, repeat=self.repeat
            )
        )

    @property
    def log(self) -> Path:
        """What the trainer printed."""
        return self.folder / RUN_LOG

    @property
    def record(self) -> Path:
        """How the run ended: a `reperf.records.run_record.RunRecord`."""
        return self.folder / RUN_RECORD

    def differences(self, planned: Self) -> str:
        """Where a recorded run differs from the plan, with both values; "" if nowhere."""
        recorded, configured = self._flat(), planned._flat()
        return "; ".join(
            f"{name} is {recorded.get(name)} by the run record, {configured.get(name)} by the "
            "configuration"
            for name in recorded | configured
            if recorded.get(name) != configured.get(name)
        )

    def _flat(self) -> dict[str, object]:
        return {**self.shape, **{name: value for name, value in self if name != "shape"}}


class Cell(Model):
    """The runs of one entry on one topology of one suite, before they have run."""

    runs: tuple[Run, ...]
    unsupported: str | None = Field(description="why the cell cannot run; None if it can")

    def with_runs(self, change: Callable[[Run], Run]) -> Self:
        """The same cell with its runs changed, if it can run."""
        runs = self.runs if self.unsupported else tuple(map(change, self.runs))
        return self.model_copy(update={"runs": runs})


def runs_of(cells: Iterable[Cell]) -> list[Run]:
    """Those of the cells that can run."""
    return [run for cell in cells if not cell.unsupported for run in cell.runs]


RECOMPUTE = "--recompute"  # the flag for recomputing features; the word after it says which


def estimated_memory(run: Run) -> int | None:
    """Bytes of a device for weights, gradients, the optimizer's moments, and features of a batch.

    Neither copies of weights on their way nor what libraries take is in it. None: not known.
    """
    workload = load_workloads()[run.workload]
    has_recipe = workload.recipe_file.exists()
    kept = getattr(workload.numbers, "kept_bytes", None) if has_recipe else None
    system = load_systems().get(run.system)
    names = run.variant.split("+") if run.variant else []
    if kept is None or system is None or not {*names} <= system.variants.keys():
        return None
    is_known = run.shape.keys() == workload.default_shape.keys()
    count = workload.parameters_of(run.shape) if is_known else None
    if count is None or not isinstance(run.batch_size, int):
        return None
    flags = [flag for each in system.varied(run.variant) for flag in each.flags]
    recompute = flags[flags.index(RECOMPUTE) + 1] if RECOMPUTE in flags else None
    halves = run.precision not in ("fp32", "tf32")
    shard, tensor = (run.parallel.shard, run.parallel.tensor) if run.parallel else (None, None)
    moments = 2 if isinstance(workload.numbers.OPTIMIZER, AdamW) else 1
    of_weights = 4 * (2 + moments) * count // (shard or 1)
    return int((of_weights + run.batch_size * kept(run.shape, halves, recompute)) // (tensor or 1))
