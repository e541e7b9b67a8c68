"""Suites that are measured from logs that are there already, instead of runs or beside them."""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from reperf.config import LogSource, Report, Suite, Window, topology_shape
from reperf.errors import ReperfError
from reperf.facts import unit_of
from reperf.logs import format_called
from reperf.logs.format import Format
from reperf.measuring.found_logs import Answer, Question, answers
from reperf.measuring.measure import Method
from reperf.measuring.own_runs import measure_own_runs

Row = dict[str, object]


def check_sources(report: Report) -> None:
    """Refuse a report whose logs are not there or have no such format.

    Raises:
        ReperfError: names the suite and what is wrong.
    """
    for suite in report.suites:
        for source in suite.sources:
            if not source.path.exists():
                raise ReperfError(f"suite {suite.name}: from: {source.path} is not there")
            if source.format is not None:
                format_called(source.format)


def measure_suite(suite: Suite, folders: Iterable[Path], window: Window) -> list[Row]:
    """Measure all that a suite names: its own runs, and the logs of others.

    Args:
        suite: the suite.
        folders: of its own runs, with train.log and run.json each.
        window: iterations of warm-up and in the window.

    Returns:
        The rows of measurements.csv, see reperf.tables.MEASUREMENTS.
    """
    rows = measure_own_runs(folders, window)
    for source in suite.sources:
        rows += _measure_source(suite, source, window)
    return rows


def _measure_source(suite: Suite, source: LogSource, window: Window) -> list[Row]:
    nodes, devices = topology_shape(source.topology) if source.topology else (None, None)
    told = [("nodes", nodes), ("devices_per_node", devices), ("batch_size", suite.batch_size)]
    question = Question(
        method=Method(source.method, source.window or window),
        log_format=source.format,
        told=[("the configuration", told)],
        digests=True,
    )
    rows = [_row(suite, source, answer) for answer in answers([source.path], question)]
    rows.sort(key=_place)
    repeats: Counter[tuple] = Counter()
    for row in rows:
        cell = row["system"], row["variant"], row["batch_size_per_device"], row["topology"]
        repeats[cell] += 1
        row["repeat"] = repeats[cell]
        if not row["topology"]:
            print(f"{row['log']}: in no cell: {row['reason']}", file=sys.stderr)
    return rows


def _row(suite: Suite, source: LogSource, answer: Answer) -> Row:
    measured, facts, run = answer.measured, answer.facts, answer.record and answer.record.run
    nodes, devices = facts.get("nodes"), facts.get("devices_per_node")
    batch = facts.get("batch_size")
    if run is not None:
        nodes, devices, batch = run.nodes, run.devices_per_node, run.batch_size
    placed = None not in (nodes, devices, batch)
    status, reason = _verdict(answer, placed)
    log_format = format_called(measured.format) if measured.format else None
    return {
        "suite": suite.name,
        "system": source.system or (run.system if run else _system_of(log_format)),
        "workload": suite.workload,
        "precision": suite.precision,
        "variant": source.variant or (run.variant if run else None),
        "batch_size_per_device": batch,
        "topology": f"{nodes}n{devices}g" if placed else "",
        "num_nodes": nodes,
        "devices_per_node": devices,
        "repeat": None,
        "status": status,
        "reason": reason,
        "throughput": measured.throughput if status == "ok" else None,
        "unit": measured.unit or unit_of(suite.workload),
        "first": measured.first,
        "last": measured.last,
        "samples": measured.samples,
        "seconds": measured.seconds,
        "method": measured.method,
        "global_batch": measured.global_batch,
        "world_size": measured.world_size,
        "log": f"{source.id}{measured.log.removeprefix(str(source.path))}",
        "log_sha256": answer.digest,
        "source": source.id,
    }


def _place(row: Row) -> tuple:
    """Where a row stands among those of its source: small topologies first."""
    size = row["num_nodes"] or 0, row["devices_per_node"] or 0
    return row["system"], row["variant"] or "", row["batch_size_per_device"] or 0, size, row["log"]


def _verdict(answer: Answer, placed: bool) -> tuple[str, str]:
    measured, record = answer.measured, answer.record
    if record is not None and record.status != "ok":
        return record.status, record.reason
    if measured.status == "ok" and not placed:
        return "refused", (
            "nothing says its batch size per device, its nodes and the devices on each; allowed: "
            "a folder such as 2n8g around it, or batch_size and topology in the configuration"
        )
    return measured.status, measured.reason


def _system_of(log_format: Format | None) -> str:
    return (log_format.system if log_format else "") or "unknown"
