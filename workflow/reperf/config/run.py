"""One run, with everything that decides it, and the runs that are one cell of a table."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from reperf.config.suite import entry_id
from reperf.config.words import Model, Topology, Whole, Workload, topology_shape
from reperf.layout import RUN_FOLDER, RUN_LOG, RUN_RECORD
from reperf.systems import Precision


class Run(Model):
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
        return entry_id(self.system, self.variant)

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
        """What names the run's cell in the tables, see reperf.measuring.tables.IDENTITY."""
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
        """How the run ended: a `reperf.training.record.RunRecord`."""
        return self.folder / RUN_RECORD

    def differences(self, planned: Self) -> str:
        """What of a recorded run is not as planned, each with both values; "" if all is."""
        return "; ".join(
            f"{name} is {mine} by the run record, {asked} by the configuration"
            for (name, mine), (_, asked) in zip(self, planned, strict=True)
            if mine != asked
        )


class Cell(Model):
    """The runs of one entry on one topology of one suite, before they have run."""

    runs: tuple[Run, ...]
    unsupported: str | None = Field(description="why the cell cannot run at all; None if it can")
