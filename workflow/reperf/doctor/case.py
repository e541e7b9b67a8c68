"""What the checks know, and the three ways in which they look at the nodes."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from reperf.config import Report
from reperf.doctor.diagnosis import Finding, Level, Probe, Trial, Visit

Value = TypeVar("Value")

NOT_THERE: Level = "not there"


@dataclass(frozen=True)
class Case:
    """All that the checks know.

    Args:
        report: what is to run.
        visits: every node of the place where it runs.
        trials: of each system, on each node and on all together.
        built: build -> SHA-256 of what it was made from; None: not made, or of another recipe.
        needed_bytes: what the report has yet to write into the work folder.
    """

    report: Report
    visits: tuple[Visit, ...]
    trials: tuple[Trial, ...]
    built: dict[str, str | None]
    needed_bytes: int

    @property
    def probes(self) -> dict[str, Probe]:
        return {visit.node: visit.probe for visit in self.visits if visit.probe}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that answered."""
        return tuple(self.probes)


@dataclass(frozen=True)
class Verdict:
    """What a check says of one node."""

    level: Level
    what: str
    advice: str = ""


def each(case: Case, check: str, judge: Callable[[Probe], Verdict]) -> Iterator[Finding]:
    """Judge each node by itself; nodes with the same verdict share a finding."""
    alike: dict[Verdict, list[str]] = defaultdict(list)
    for node, probe in case.probes.items():
        alike[judge(probe)].append(node)
    for said, nodes in alike.items():
        yield finding(check, tuple(nodes), said)


def same(
    case: Case,
    check: str,
    value: Callable[[Probe], str | None],
    advice: str = "runs on different nodes cannot be compared",
) -> Iterator[Finding]:
    """Expect one value on all nodes, and name those that differ from most."""
    most = usual(case, value)

    def judge(probe: Probe) -> Verdict:
        own = value(probe)
        if own != most:
            return Verdict("warning", f"{own or 'none'}, elsewhere {most or 'none'}", advice)
        return Verdict("ok", own) if own else Verdict(NOT_THERE, "none")

    return each(case, check, judge)


def usual(case: Case, value: Callable[[Probe], Value]) -> Value | None:
    """The value that most nodes have, leaving out those without one; in a tie, the first node's."""
    values = [value(probe) for probe in case.probes.values()]
    return max((one for one in values if one is not None), key=values.count, default=None)


def enough(
    case: Case,
    check: str,
    amount: Callable[[Probe], float | None],
    *,
    least: float,
    show: Callable[[float], str],
    level: Level,
    advice: str,
) -> Iterator[Finding]:
    """Expect at least `least` of something; the nodes that have it share a finding."""
    good = {}
    for node, probe in case.probes.items():
        own = amount(probe)
        if own is None:
            yield finding(check, (node,), Verdict(NOT_THERE, "not seen"))
        elif own >= least:
            good[node] = own
        else:
            what = f"{show(own)}; at least {show(least)} needed"
            yield finding(check, (node,), Verdict(level, what, advice))
    if good:
        yield finding(check, tuple(good), Verdict("ok", span(good.values(), show)))


def span(values: Collection[float], show: Callable[[float], str]) -> str:
    """The least and the largest value, "74.7 to 112", or one where both are shown alike."""
    return " to ".join(dict.fromkeys(map(show, (min(values), max(values)))))


def finding(check: str, nodes: tuple[str, ...], said: Verdict) -> Finding:
    """A verdict on some nodes as a row of the table."""
    return Finding(check=check, level=said.level, nodes=nodes, what=said.what, advice=said.advice)
