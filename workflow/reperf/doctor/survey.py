"""What the checks know, and the three ways in which they look at the nodes."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from reperf.config import Report
from reperf.records.diagnosis import Finding, Level, NodeReport, Probe, Trial

Value = TypeVar("Value")

NOT_THERE: Level = "not there"


@dataclass(frozen=True)
class Survey:
    """All that the checks know.

    Attributes:
        report: what is to run.
        node_reports: of every node of the place where it runs.
        trials: of each system, on each node and on all together.
        built: build -> SHA-256 of what it was made from; None: not made, or of another recipe.
        needed_bytes: what the report has yet to write into the work folder.
    """

    report: Report
    node_reports: tuple[NodeReport, ...]
    trials: tuple[Trial, ...]
    built: dict[str, str | None]
    needed_bytes: int

    @property
    def probes(self) -> dict[str, Probe]:
        """Node -> what it reported; without the nodes that did not answer."""
        return {report.node: report.probe for report in self.node_reports if report.probe}


@dataclass(frozen=True)
class Verdict:
    """The result of a check on one node."""

    level: Level
    what: str
    advice: str = ""

    def on(self, check: str, *nodes: str) -> Finding:
        """The verdict on some nodes, as a row of the table."""
        return Finding(
            check=check, level=self.level, nodes=nodes, what=self.what, advice=self.advice
        )


def check_reports(
    survey: Survey, check: str, judge: Callable[[NodeReport], Verdict]
) -> Iterator[Finding]:
    """Judge the report of each node that answered; nodes with the same verdict share a finding."""
    nodes_of: dict[Verdict, list[str]] = defaultdict(list)
    for report in survey.node_reports:
        if report.probe:
            nodes_of[judge(report)].append(report.node)
    for verdict, nodes in nodes_of.items():
        yield verdict.on(check, *nodes)


def check_each(survey: Survey, check: str, judge: Callable[[Probe], Verdict]) -> Iterator[Finding]:
    """Judge each node that answered by what it reported."""
    probes = survey.probes
    return check_reports(survey, check, lambda report: judge(probes[report.node]))


def check_equal(
    survey: Survey, check: str, value: Callable[[Probe], str | None]
) -> Iterator[Finding]:
    """Expect one value on all nodes, and name the nodes that differ from most."""
    usual = most_common(survey, value)

    def judge(probe: Probe) -> Verdict:
        this = value(probe)
        if this != usual:
            what = f"{this or 'none'}, elsewhere {usual or 'none'}"
            return Verdict("warning", what, "runs on different nodes cannot be compared")
        return Verdict("ok", this) if this else Verdict(NOT_THERE, "none")

    return check_each(survey, check, judge)


def most_common(survey: Survey, value: Callable[[Probe], Value]) -> Value | None:
    """The value of most nodes, without the nodes that have none; in a tie, the first node's."""
    values = [value(probe) for probe in survey.probes.values()]
    return max((value for value in values if value is not None), key=values.count, default=None)


def span(values: Collection[float], show: Callable[[float], str]) -> str:
    """The least and the greatest value, "74.7 to 112"; a single value if both look alike."""
    return " to ".join(dict.fromkeys(map(show, (min(values), max(values)))))
