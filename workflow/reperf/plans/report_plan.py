"""The plan of a report: its configuration, which says what its page holds and in which order."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from reperf.config.words import Model
from reperf.errors import ReperfError
from reperf.faults import checked
from reperf.layout import REPORT_PLAN


class ReportPlan(Model):
    """results/plan.json."""

    plan_version: Literal[1] = 1
    profile: str = Field(description="of Snakemake, by which the report is made")
    report: dict[str, Any] = Field(description="the configuration, with all defaults")

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"

    @property
    def suites(self) -> list[str]:
        """Their names, in the report's order."""
        return [suite["name"] for suite in self.report["suites"]]

    @classmethod
    def of(cls) -> Self:
        """Read the plan of the report in this folder.

        Raises:
            ReperfError: the file is missing, or is no plan.
        """
        try:
            return checked(cls, json.loads(Path(REPORT_PLAN).read_bytes()), REPORT_PLAN)
        except (OSError, ValueError, RecursionError) as error:
            raise ReperfError(f"{REPORT_PLAN}: not a plan: {error}") from None
