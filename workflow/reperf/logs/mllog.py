"""The step log of reperf's own trainers: MLPerf's `:::MLLOG {...}` lines.

    :::MLLOG {"key": "tracked_stats", "value": {"iteration": 20, "seconds": 12.3, "samples": 5120, "throughput": 410.2, ..}, ..}

Besides samples a line may hold further counts, such as "tokens". The clock cannot jump, and the log
ends with `run_stop`.

Source: workflow/trainers/contract/steplog.py; github.com/mlcommons/logging.
"""

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from reperf.logs.clock import MONOTONIC
from reperf.logs.facts import Fact
from reperf.logs.format import END, Format, Record, line
from reperf.logs.scan import blocks
from reperf.training.record import Status

# If no object follows, the rest of the line is skipped: it may hold thousands of beginnings.
EVENT = line(r":::MLLOG (?:(\{.*\})" + END + "|.*)")

_EXCUSES: dict[bytes, Status] = {b":::REFUSED ": "failed", b":::OOM ": "oom"}
_FACTS = {
    "submission_benchmark": "workload",
    "global_batch_size": "global_batch",
    "world_size": "world_size",
    "parameters": "parameters",
}
_NO_COUNTS = {"iteration", "seconds", "loss", "throughput"}
"""All other numbers of a step are counts."""
_MARK = b":::MLLOG "
_LONGEST_EXCUSE = 10_000  # bytes
_KEYS = ("configuration", "parameters", "peak_memory_bytes", "precision", "run_stop")
"""The facts by which a run is judged; a log may hold any number of others."""


def read_event(match: re.Match[bytes]) -> dict[str, Any]:
    """The object of a line that EVENT matches; empty if it holds none."""
    return _object(match[1] or b"{}")


def event_of(record: bytes) -> dict[str, Any]:
    """The object of a record as it stands in the log."""
    return _object(record.removeprefix(_MARK))


def _object(text: bytes) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def is_number(value: object) -> bool:
    """Whether JSON gave a number of a sensible size."""
    return type(value) in (int, float) and abs(value) < 1e18  # false for NaN, too


def is_count(value: object) -> bool:
    """Whether JSON gave a count; others refuse one that is too large."""
    return type(value) in (int, float) and value >= 1


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event = read_event(match)
    value = event.get("value")
    if event.get("key") != "tracked_stats" or not isinstance(value, dict):
        return None
    iteration, seconds = value.get("iteration"), value.get("seconds")
    if type(iteration) is not int or not is_number(iteration) or not is_number(seconds):
        return None
    rate = value.get("throughput")
    return Record(
        iteration=iteration,
        rank=rank,
        time=seconds,
        rate=rate if is_number(rate) else None,
        text=match[0],
    )


def _counts(text: bytes) -> dict[str, float]:
    value = event_of(text).get("value", {})
    return {
        name: count for name, count in value.items() if name not in _NO_COUNTS and is_number(count)
    }


def _facts(head: bytes) -> Iterator[Fact]:
    for match in EVENT.finditer(head):
        event = read_event(match)
        name, value = _FACTS.get(str(event.get("key"))), event.get("value")
        fits = isinstance(value, str) if name == "workload" else is_count(value)
        if name and fits:
            yield name, value


def has_ended(text: bytes) -> bool:
    """Whether a text holds the line that ends a run that went well."""
    return b'"run_stop"' in text and any(map(_is_good_end, EVENT.finditer(text)))


def _is_good_end(match: re.Match[bytes]) -> bool:
    event = read_event(match)
    metadata = event.get("metadata")
    status = metadata.get("status") if isinstance(metadata, dict) else None
    return event.get("key") == "run_stop" and status == "success"


FORMAT = Format(
    name="mllog",
    system="",
    marker=b'"tracked_stats"',
    pattern=EVENT,
    clock=MONOTONIC,
    read=_read,
    facts=_facts,
    counts=_counts,
    ended=has_ended,
)


def read_facts(log: Path) -> dict[str, Any]:
    """What a log of ours says about its whole run: key -> its last value, of any type."""
    events = map(read_event, _events(log))
    found = ((event.get("key"), event.get("value")) for event in events)
    return {key: value for key, value in found if isinstance(key, str) and key in _KEYS}


def read_ends(log: Path, iterations: Collection[int]) -> dict[int, float]:
    """When some printed iterations ended: iteration -> seconds, by the trainer's own clock."""
    steps = (_read(match, ()) for match in _events(log))
    return {step.iteration: step.time for step in steps if step and step.iteration in iterations}


def _events(log: Path) -> Iterator[re.Match[bytes]]:
    with log.open("rb") as stream:
        for block in blocks(stream):
            for text in block.splitlines(keepends=True):
                # One search per line: a long one may hold thousands of beginnings.
                if match := EVENT.search(text, max(text.rfind(_MARK), 0)):
                    yield match


def read_excuse(log: Path) -> tuple[Status, str] | None:
    """How and why a trainer of ours gave up, if it said so."""
    with log.open("rb") as stream:
        for block in blocks(stream):
            for mark, status in _EXCUSES.items():
                at = block.find(mark)
                if at >= 0:
                    line_end = block[at + len(mark) :][:_LONGEST_EXCUSE].split(b"\n", 1)[0]
                    return status, line_end.decode(errors="replace").strip()
    return None
