"""MLPerf's logging format: `:::MLLOG {...}` lines. Our own trainers write it.

Source: github.com/mlcommons/logging, mlperf_logging/mllog; ours is workflow/systems/steplog.py,
which adds the iteration, a clock that cannot jump and the samples so far to `tracked_stats`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reperf.logs.format import Fact, Format, Record
from reperf.logs.scan import blocks
from reperf.records import Status

_EVENT = re.compile(rb":::MLLOG (\{.*\})(?=\s)")
_EXCUSES: dict[bytes, Status] = {b":::REFUSED ": "failed", b":::OOM ": "oom"}
_FACTS = {
    "submission_benchmark": "workload",
    "global_batch_size": "global_batch",
    "world_size": "world_size",
    "parameters": "parameters",
}


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event = _event(match)
    value = event.get("value")
    if event.get("key") != "tracked_stats" or not isinstance(value, dict):
        return None
    iteration, seconds = value.get("iteration"), value.get("seconds")
    if type(iteration) is not int or not _is_number(seconds):
        return None
    rate, samples = value.get("throughput"), value.get("samples")
    return Record(
        iteration=iteration,
        rank=rank,
        time=seconds,
        rate=rate if _is_number(rate) else None,
        samples=samples if _is_number(samples) else None,
        text=match[0],
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e18  # false for NaN, too


def _event(match: re.Match[bytes]) -> dict[str, Any]:
    """The line's object; empty if it is none, as when two writers have mixed their lines."""
    try:
        event = json.loads(match[1])
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _facts(head: bytes) -> Iterator[Fact]:
    for match in _EVENT.finditer(head):
        event = _event(match)
        name, value = _FACTS.get(str(event.get("key"))), event.get("value")
        fits = isinstance(value, str) if name == "workload" else _is_number(value) and value >= 1
        if name and fits:
            yield name, value


FORMAT = Format(
    name="mllog",
    source="github.com/mlcommons/logging; workflow/systems/steplog.py",
    marker=b'"tracked_stats"',
    pattern=_EVENT,
    read=_read,
    facts=_facts,
    end=re.compile(rb':::MLLOG \{.*"run_stop".*"success".*\}(?=\s)'),
)


def read_facts(log: Path) -> dict[str, Any]:
    """All that a log of ours says, but for the iterations: key -> the last value."""
    facts = {}
    with log.open("rb") as stream:
        for block in blocks(stream):
            for match in _EVENT.finditer(block):
                event = _event(match)
                if event.get("key") not in (None, "tracked_stats"):
                    facts[event["key"]] = event.get("value")
    return facts


def read_excuse(log: Path) -> tuple[Status, str] | None:
    """How and why a trainer of ours gave up, if it said so."""
    with log.open("rb") as stream:
        for block in blocks(stream):
            for mark, status in _EXCUSES.items():
                at = block.find(mark)
                if at >= 0:
                    line = block[at + len(mark) :].split(b"\n", 1)[0]
                    return status, line.decode(errors="replace").strip()
    return None
