"""A whole report, and how a configuration file becomes one."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from reperf.config.cluster import Cluster
from reperf.config.data import Data
from reperf.config.run import Cell, Run
from reperf.config.suite import Entry, EntryOrName, Suite, chosen_systems
from reperf.config.window import Window
from reperf.config.words import (
    LARGEST_SEED,
    MONTH_IN_SECONDS,
    MOST_ENTRIES,
    MOST_ITERATIONS,
    MOST_PROCESSES,
    MOST_RUNS,
    MOST_SUITES,
    Model,
    Number,
    Text,
    Topologies,
    distinct,
    topology_shape,
)
from reperf.errors import ReperfError
from reperf.faults import first_fault
from reperf.systems import load_systems


class Report(Model):
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
        BeforeValidator(chosen_systems, json_schema_input_type=str | list[str | Entry]),
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
                        dict(suite) | {"systems": chosen_systems(systems)}
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
        distinct(tuple(suite.name for suite in suites))
        return suites

    def suite(self, name: str) -> Suite:
        """The suite called `name`."""
        return next(suite for suite in self.suites if suite.name == name)

    def alone(self, name: str) -> Self:
        """The report of one suite and no other."""
        return self.model_copy(update={"suites": (self.suite(name),)})

    def topologies_of(self, suite: Suite) -> tuple[str, ...]:
        """The topologies on which a suite runs; none if it only measures logs."""
        return (suite.topologies or self.topologies) if suite.entries else ()

    @property
    def resolved_device(self) -> Literal["cpu", "cuda"]:
        """What the runs train on.

        Raises:
            ValueError: nobody has decided it yet; `reperf.machine.resolve` asks the hardware.
        """
        if self.device == "auto":
            raise ValueError("the device is still auto: reperf.machine.resolve decides it")
        return self.device

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
        reads = system.reads[0] if suite.input == "records" and system.reads else suite.input
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
            input=reads,
            data=self.data_folder(reads),
            device=self.resolved_device,
            threads=self.threads_per_device,
            seed=self.seed + repeat - 1,
        )

    def data_folder(self, reads: str) -> str | None:
        """The folder that a run reads: record parts, the images, or None when synthetic."""
        if reads == "synthetic":
            return None
        if reads == "folder":
            return str(self.image_folder)
        return f"data/{self.data.name}/{reads}"

    @property
    def image_folder(self) -> Path:
        """The folder that holds train/<synset>/*.JPEG."""
        return self.data.images or Path("data", self.data.name, "images")


def load_report(config: Mapping[str, Any], name: str = "configuration") -> Report:
    """Check a configuration that YAML gave.

    Args:
        config: the parsed file.
        name: the file's, for the message.

    Raises:
        ReperfError: one line with the key, the value and what is allowed.
    """
    try:
        return Report.model_validate(config)
    except ValidationError as error:
        raise ReperfError(f"{name}: {first_fault(error, Report, config)}") from None
