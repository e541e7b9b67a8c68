"""survey.json: what `reperf survey` ran on the nodes of a cluster, from which all else follows."""

from typing import Any

from pydantic import BaseModel, Field

from reperf.records.run_record import Sealed


class SurveyedRun(BaseModel, extra="forbid"):
    """One run on one node, or on a pair of nodes."""

    node: str = Field(description="its name; of a pair: both names, with a + between them")
    round: int = Field(description="from 1; all nodes, or all pairs, train in a round")
    status: str = Field(description="ok; or how the run ended; or refused: it has no number")
    reason: str = Field("", description="why the status is not ok, one line")
    throughput: float | None = Field(None, description="samples a second")
    losses: dict[int, float] = Field({}, description="iteration -> loss, of each printed one")
    weights: tuple[str, ...] = Field((), description="digest of each rank's weights at the end")
    alone: tuple[float | None, ...] = Field(
        (), description="seconds that each rank's passes took by themselves, see docs/measuring.md"
    )
    log: str


class SurveyRecord(Sealed):
    """What was surveyed, and the runs."""

    KIND = "a survey"

    cell: str = Field(description="what every node trained")
    plan: str = Field(description="SHA-256 of the plan's content, as in run.json")
    made: str = Field(description="ISO 8601, UTC")
    margin: float = Field(description="smallest percentage by which a slow node is slower")
    asked: int = Field(description="runs asked of each node")
    hosts: bool = Field(False, description="whether the nodes are hosts, which no Slurm knows")
    absent: dict[str, str] = Field(description="nodes that get no jobs, and why")
    runs: tuple[SurveyedRun, ...]
    pair_cell: str = Field("", description="what every pair trained; empty: no links were surveyed")
    pairs: tuple[SurveyedRun, ...] = Field((), description="the runs of pairs of nodes")
    verdicts: dict[str, Any] = Field({}, description="what follows from the runs, by node")
