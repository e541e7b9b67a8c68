"""The plan of a report: its configuration, which says what its page holds and in which order."""

from typing import Any

from pydantic import Field

from reperf.plans.plan import Plan


class ReportPlan(Plan):
    """results/plan.json."""

    profile: str = Field(description="of Snakemake, by which the report is made")
    report: dict[str, Any] = Field(description="the configuration, with all defaults")

    @property
    def suites(self) -> list[str]:
        """Their names, in the report's order."""
        return [suite["name"] for suite in self.report["suites"]]
