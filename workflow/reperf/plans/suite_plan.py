"""The plan of a suite: everything that decides its tables and figures, in one file."""

import json
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from reperf.building.code import seen_from_here
from reperf.config import Cell, Run, Suite
from reperf.config.words import Model
from reperf.errors import ReperfError
from reperf.faults import checked
from reperf.layout import SUITE_PLAN
from reperf.systems import load_systems, load_workloads
from reperf.training.record import LargestBatch


class SuitePlan(Model):
    """plan.json in a suite's folder."""

    plan_version: Literal[1] = 1
    suite: Suite
    cells: tuple[Cell, ...] = Field(description="in the order of the table")
    plans: dict[str, str] = Field(description="a run's folder -> the digest of its plan")
    batches: dict[str, str] = Field(
        description="an entry whose batch size is searched for -> the file with what was found"
    )

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @classmethod
    def of(cls, suite: str) -> Self:
        """Read the plan of a suite, with the batch sizes that were found.

        Raises:
            ReperfError: the file is missing or no plan, or a search has not ended.
        """
        path = Path(SUITE_PLAN.format(suite=suite))
        try:
            plan = checked(cls, json.loads(path.read_bytes()), path)
        except (OSError, ValueError, RecursionError) as error:
            raise ReperfError(f"{path}: not a plan: {error}") from None
        sizes = {
            entry: LargestBatch.read(found).batch_size for entry, found in plan.batches.items()
        }
        cells = tuple(
            cell.model_copy(
                update={
                    "runs": tuple(
                        run.with_batch(sizes[run.entry]) if run.entry in sizes else run
                        for run in cell.runs
                    )
                }
            )
            for cell in plan.cells
        )
        return plan.model_copy(update={"cells": cells})

    @property
    def runs(self) -> list[Run]:
        """Those of all cells that can run."""
        return [run for cell in self.cells if not cell.unsupported for run in cell.runs]

    @property
    def files(self) -> list[str]:
        """What must be read to know the plan: its file, and what searches have found."""
        return [SUITE_PLAN.format(suite=self.suite.name), *sorted(set(self.batches.values()))]

    def descriptions(self) -> list[str]:
        """The files that say what the suite's workload and its systems are."""
        systems = load_systems()
        described = {systems[entry.system].file for entry in self.suite.entries}
        return seen_from_here([load_workloads()[self.suite.workload].file, *sorted(described)])
