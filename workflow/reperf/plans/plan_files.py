"""Plans as files: what decides a run, a data set, an image, a suite and the report.

They are written before the first job starts, so that later changes to the configuration are for the
next call. Jobs read the files; Snakemake has their digests as the `params` of rules.
"""

import json
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from reperf.building.code import seen_from_here
from reperf.builds import ASKED, Build, build_of
from reperf.config import Cell, Cluster, Container, Data, Run, SiteEnvironment, Suite, runs_of
from reperf.errors import ReperfError
from reperf.files import sha256 as sha256_of
from reperf.layout import ROOT, SUITE_PLAN
from reperf.records.run_record import LargestBatch
from reperf.systems import ENVIRONMENTS, Device, LockName, load_systems
from reperf.systems.workloads import load_workloads
from reperf.validation import Model, checked


class Plan(Model):
    """A file, mostly plan.json, that decides a result."""

    plan_version: Literal["1.0"] = "1.0"

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file's content."""
        return sha256(self.text.encode()).hexdigest()

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a plan; a ReperfError says that the file is missing, or is no plan."""
        try:
            return checked(cls, json.loads(Path(path).read_bytes()), f"{path}: not a plan")
        except (OSError, ValueError, RecursionError) as error:
            fault = getattr(error, "strerror", None) or str(error)
        raise ReperfError(f"{path}: not a plan: {fault}")


class SetPlan(Plan):
    """plan.json in a data set's folder: its part of the configuration."""

    data: Data


class MadePlan(Plan):
    """plan.json in a build's folder, but for locks of systems: what it is made from."""

    system: str = Field(description="for which it is")
    device: Device = Field(description="for which it is; an image is for both")
    lock: LockName | None = None
    lock_file: str | None = None
    container: Container | None = None
    environment: SiteEnvironment | None = None
    cluster: Cluster | None = Field(None, description="where an image is pulled; null: here")

    @classmethod
    def of(cls, run: Run, cluster: Cluster | None) -> Self:
        """The plan of the build in which a run trains."""
        asked: dict[str, Any] = {name: getattr(run, name) for name in ASKED}
        if run.container:
            asked |= {"device": "cpu", "cluster": cluster}
        return cls(**asked)

    @property
    def build(self) -> Build:
        """The build that a rule makes."""
        return build_of(self)


class SuitePlan(Plan):
    """plan.json in a suite's folder: all that decides its tables, figures and archive."""

    suite: Suite
    cells: tuple[Cell, ...] = Field(description="in the order of the table")
    plans: dict[str, str] = Field(description="a run's folder -> the digest of its plan")
    batches: dict[str, str]
    """an entry whose batch size is searched for -> the file with what was found"""

    @classmethod
    def of(cls, suite: str) -> Self:
        """Read the plan of a suite, with the batch sizes that were found."""
        plan = cls.read(SUITE_PLAN.format(suite=suite))
        sizes = {
            entry: LargestBatch.read(found).batch_size for entry, found in plan.batches.items()
        }

        def sized(run: Run) -> Run:
            return run.with_batch(sizes[run.entry]) if run.entry in sizes else run

        cells = tuple(cell.with_runs(sized) for cell in plan.cells)
        return plan.model_copy(update={"cells": cells})

    @property
    def runs(self) -> list[Run]:
        """Those of all cells that can run."""
        return runs_of(self.cells)

    @property
    def searches(self) -> list[str]:
        """The files with the batch sizes that it leaves to searches."""
        return sorted({*self.batches.values()})

    def descriptions(self) -> list[str]:
        """The files that say what the suite's workload and its systems are."""
        systems = load_systems()
        described = {file for entry in self.suite.entries for file in systems[entry.system].files}
        return seen_from_here([load_workloads()[self.suite.workload].file, *sorted(described)])


class ReportPlan(Plan):
    """results/plan.json: the configuration, which says what the page holds and in which order."""

    report: dict[str, Any] = Field(description="the configuration, with all defaults")

    @property
    def suites(self) -> list[str]:
        """Their names, in the report's order."""
        return [suite["name"] for suite in self.report["suites"]]


def training_files(runs: list[Run]) -> dict[str, Path]:
    """The files that decided how runs trained, by their paths below the root."""
    files = set()
    for build, workload in {(build_of(run), run.workload) for run in runs}:
        trained = build.system
        described = (file for system in (trained, trained.host) for file in system.files)
        files |= {*trained.code(workload), *described, *build.recipe}
        files.add(load_workloads()[workload].file)
    return {_archived(file): file for file in files}


def _archived(file: Path) -> str:
    """The path of such a file below the root; of a lock elsewhere, a name that no other has."""
    here = file.resolve()
    if here.is_relative_to(ROOT):
        return here.relative_to(ROOT).as_posix()
    return f"{ENVIRONMENTS.name}/{sha256_of(file)[:8]}-{file.name}"
