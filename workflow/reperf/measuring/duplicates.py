"""Runs are counted once, so that a copy is no repeat."""

import re
from collections import defaultdict
from collections.abc import Iterator

from reperf.measuring.found_logs import RunResult
from reperf.measuring.measure import Span

_RANK = re.compile(r"(?i)(?<![a-z])(workerlog\.|rank[._-]?)\d+")
"""How launchers name the log of each rank; only the first of these names has no other meaning."""


class DuplicateFinder:
    """The runs that count so far."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, object], str] = {}
        self._ranks: dict[str, list[tuple[Span | None, str]]] = defaultdict(list)
        self._spans: dict[object, list[tuple[frozenset[str], Span, str]]] = defaultdict(list)

    def reason(self, log: str, cell: object, result: RunResult) -> str:
        """Count a run that was measured; or say why it does not count, as which log's copy.

        Args:
            log: the name of its log, for others that turn out to be the same run.
            cell: what only repeats have in common.
        """
        marks = list(_marks(result))
        for mark in marks:
            if other := self._logs.get(mark):
                return f"counted already, as {other}: {mark[0]}"
        hosts, span, launch = _hosts(result), _span(result), _RANK.sub(r"\1*", log)
        for when, other in self._ranks[launch]:
            if _overlap(span, when) if span and when else "workerlog." in launch:
                return f"counted already, as {other}: another rank of the same run"
        if launch != log:
            self._ranks[launch].append((span, log))
        if hosts and span:
            for others, taken, other in self._spans[cell]:
                if hosts & others and _overlap(span, taken):
                    name = min(hosts & others)
                    return f"counted already, as {other}: the same time on the same host, {name}"
            self._spans[cell].append((hosts, span, log))
        self._logs |= dict.fromkeys(marks, log)
        return ""


def _marks(result: RunResult) -> Iterator[tuple[str, object]]:
    """What only the same run has, each as its name and its value."""
    if result.digest:
        yield "the same file", (result.digest, result.measured.run)
    if result.fingerprint:
        yield "the same lines or times in the window", result.fingerprint.digest
    if result.record is not None and result.record.started:
        record = result.record
        yield "the same run by its record", (record.host.hostname, record.started, record.slurm_job)


def _hosts(result: RunResult) -> frozenset[str]:
    """The machines of a run, as far as its record or its log names them.

    Slurm may give a node to several jobs at the same time.
    """
    if record := result.record:
        job = f", job {record.slurm_job}" if record.slurm_job else ""
        return frozenset(f"{node}{job}" for node in record.nodes or (record.host.hostname,))
    return frozenset(result.facts.get("hosts") or ())


def _overlap(one: Span, other: Span) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _span(result: RunResult) -> Span | None:
    recorded = result.record.span if result.record else None
    return recorded or (result.fingerprint.span if result.fingerprint else None)
