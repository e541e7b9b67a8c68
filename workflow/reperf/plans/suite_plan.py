"""The plan of a suite: everything that decides its tables and figures, in one file."""

from typing import Self

from pydantic import Field

from reperf.building.code import seen_from_here
from reperf.config import Cell, Run, Suite, runs_of
from reperf.layout import SUITE_PLAN
from reperf.plans.plan import Plan
from reperf.systems import load_systems, load_workloads
from reperf.training.record import LargestBatch


class SuitePlan(Plan):
    """plan.json in a suite's folder."""

    suite: Suite
    cells: tuple[Cell, ...] = Field(description="in the order of the table")
    plans: dict[str, str] = Field(description="a run's folder -> the digest of its plan")
    batches: dict[str, str] = Field(
        description="an entry whose batch size is searched for -> the file with what was found"
    )

    @classmethod
    def of(cls, suite: str) -> Self:
        """Read the plan of a suite, with the batch sizes that were found.

        Raises:
            ReperfError: the file is missing or no plan, or a search has not ended.
        """
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
    def files(self) -> list[str]:
        """What must be read to know the plan: its file, and what searches have found."""
        return [SUITE_PLAN.format(suite=self.suite.name), *sorted(set(self.batches.values()))]

    def descriptions(self) -> list[str]:
        """The files that say what the suite's workload and its systems are."""
        systems = load_systems()
        described = {systems[entry.system].file for entry in self.suite.entries}
        return seen_from_here([*load_workloads()[self.suite.workload].files, *sorted(described)])
