"""MLPerf's `:::MLLOG {...}` lines, which logs of any format may hold beside their own.

They say the global batch, when evaluations begin and end, and that a run came to its end.

Source: github.com/mlcommons/logging, mlperf_logging/mllog; the submissions in
github.com/mlcommons/training_results_v0.7 to v4.0. HugeCTR prints the same events in brackets before
a script turns them into MLLOG lines.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf
from typing import Any

from reperf.logs.facts import Fact
from reperf.logs.format import Finder, marked

# If no object follows, the rest of the line is skipped: it may hold thousands of beginnings.
EVENT_LINE = r":::MLLOG (?:(\{.*\})(?=\s)|.*)"
"""The pattern of such a line, whose first group is its object."""
EVENT = re.compile(EVENT_LINE.encode())

MARK = b":::MLLOG "
_GOOD = "success"
_LONGEST_STATUS = 40
_DECODER = json.JSONDecoder()
_REMEMBERED = 1 << 12
"""Bytes of the longest object that is remembered."""
_BATCH = re.compile(rb'"key": ?"global_batch_size", ?"value": ?(\d{1,15})\b')
_TIME = rb"(?P<time>\d{1,15}(?:\.\d{1,9})?(?:e[+-]?\d\d?)?)"
_EVALUATION = re.compile(
    rb'"time_ms": ?' + _TIME + rb'[,}][^\r\n]{0,200}?"key": ?"eval_(?P<event>start|stop|accuracy)"'
    rb"|\[" + _TIME.replace(b"?P<time>", b"?P<clock>") + rb", eval_(?P<bare>start|stop|accuracy)\b"
)


def read_event(match: re.Match[bytes]) -> dict[str, Any]:
    """The object of a line that EVENT matches; empty if it holds none."""
    return _object(match[1] or b"{}")


def events_in(text: bytes) -> Iterator[dict[str, Any]]:
    """The objects of all such lines in a text, empty ones included."""
    return map(read_event, EVENT.finditer(text))


def tracked_stats(
    match: re.Match[bytes],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The object of a line of `tracked_stats`, its value and its metadata; what is not there is {}."""
    event = read_event(match)
    if event.get("key") != "tracked_stats":
        return {}, {}, {}
    value, metadata = event.get("value"), event.get("metadata")
    value = value if isinstance(value, dict) else {}
    return event, value, metadata if isinstance(metadata, dict) else {}


def samples_counted(record: bytes) -> dict[str, int]:
    """The samples that the metadata of a record count, if they do."""
    metadata = event_of(record).get("metadata", {})
    return {"samples": metadata["samples_count"]} if "samples_count" in metadata else {}


def event_of(record: bytes) -> dict[str, Any]:
    """The object of a record as it stands in the log."""
    return _object(record.removeprefix(MARK))


def _object(text: bytes) -> dict[str, Any]:
    return _parsed_once(text) if len(text) <= _REMEMBERED else _parsed(text)


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        event = _DECODER.decode(text.decode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


_parsed_once = lru_cache(maxsize=512)(_parsed)
"""Until the format is known, several readers look at each of the first lines."""


def is_number(value: object) -> bool:
    """Whether JSON gave a number of a sensible size."""
    return type(value) in (int, float) and abs(value) < 1e18  # false for NaN, too


def is_count(value: object) -> bool:
    """Whether JSON gave a count; others refuse one that is too large."""
    return type(value) in (int, float) and value >= 1


_FITS = {"workload": lambda value: isinstance(value, str), "start_loss": is_number}
"""What the value of a fact must be that is no count."""


def facts_of(names: Mapping[str, str]) -> Finder:
    """A finder of facts in such lines.

    Args:
        names: key of an event -> name of the fact, which is a count unless _FITS says otherwise.
    """

    @marked(*(f'"{key}"'.encode() for key in names))
    def find(head: bytes) -> Iterator[Fact]:
        for event in events_in(head):
            name, value = names.get(str(event.get("key"))), event.get("value")
            if name and _FITS.get(name, is_count)(value):
                yield name, value

    return find


def has_ended(text: bytes) -> bool:
    """Whether a text holds the line that ends a run that went well."""
    return b'"run_stop"' in text and _GOOD in map(_status, events_in(text))


def stopped_as(text: bytes) -> str:
    """The status with which a run stopped that did not go well; empty if a text says none."""
    if b'"run_stop"' not in text:
        return ""
    said = map(_status, events_in(text))
    return next((status for status in said if status not in ("", _GOOD)), "")


def _status(event: Mapping[str, Any]) -> str:
    """What an event says of how its run stopped; empty if it says nothing."""
    metadata = event.get("metadata")
    if event.get("key") != "run_stop" or not isinstance(metadata, dict):
        return ""
    return str(metadata.get("status") or "")[:_LONGEST_STATUS]


def facts_in(text: bytes) -> Iterator[Fact]:
    """What MLLOG lines in a text say about the run, whichever format the log has."""
    if b'"global_batch_size"' not in text:
        return
    for match in _BATCH.finditer(text):
        if (batch := int(match[1])) > 0:
            yield "global_batch", batch


def evaluated_in(text: bytes) -> float:
    """The seconds that evaluations take in a text between two records.

    Returns:
        0 if there is none; infinity if one begins or ends beyond the text.
    """
    if b"eval_st" not in text:
        return 0.0
    found: list[tuple[float, float | None]] = []
    for match in _EVALUATION.finditer(text):
        event = match["event"] or match["bare"]
        time = float(match["time"] or match["clock"]) / 1000
        if event == b"start":
            found.append((time, None))
        elif found:  # the accuracy comes before or behind the stop, or instead of it
            found[-1] = found[-1][0], time
        elif event == b"stop":
            return inf
    if any(stop is None for _, stop in found):
        return inf
    return sum(max(0.0, stop - start) for start, stop in found)
