"""The runs of a suite as rows: those made here, and those in logs that others made."""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from statistics import median
from typing import Any

from reperf.config import LogSource, Report, Run, Suite, topology_shape
from reperf.config.run import estimated_memory
from reperf.config.suite import shown_variant
from reperf.config.words import LARGEST
from reperf.errors import ReperfError
from reperf.logs.checks import Refused
from reperf.logs.configured import DATA_PARALLEL
from reperf.logs.facts import Fact, FactName, Facts, Setting, called
from reperf.logs.format import Format
from reperf.logs.formats import format_called, mllog
from reperf.measuring.counts import ANY, all_counts, per_second, unit_of
from reperf.measuring.duplicates import DuplicateFinder
from reperf.measuring.found_logs import (
    NO_LOG,
    MeasureRequest,
    RunResult,
    files_of,
    measure_paths,
    own_run,
)
from reperf.measuring.measure import Measurement, Method
from reperf.measuring.variants import facts_of_format, facts_of_system, variant_said
from reperf.member_names import fault_of_name, shown
from reperf.records.cell_key import differences, key_of
from reperf.records.run_record import Power, RunRecord
from reperf.records.shell import of_repeats
from reperf.systems.gpu_rules import data_sheet_rate
from reperf.systems.workloads import load_workloads, written_shape
from reperf.text import natural_sort_key, printable
from reperf.values import FILLED_IN, NOT_FILLED_IN

Row = dict[str, object]
_Measured = tuple[Row, RunResult]

SOURCE = "the configuration"
_OF_OK = ("throughput", "waited", "also_throughput", "also_unit")
"""The columns of a row that only a run which counts has."""
_CLAIMS: tuple[FactName, ...] = ("workload", "precision", "world_size")
"""What a row is compared by: it says which of these the configuration alone claims."""
_OF_A_CELL: tuple[FactName, ...] = ("framework", "device", "data_set", "platform")
"""What no suite need say, and repeats must have in common."""
_OF_RECORD = (
    *("hosts", "date", "commit", "key"),
    *("load_before", "load_during", "gpu_processes"),
    *("peak_memory", "peak_memory_is", "estimated_memory"),
    *("joules", "matrix_rate", "data_sheet_rate", "stage_memory"),
    *("slowest_rank", "slowest_rank_behind", "shared_cpus", "throttled", "mhz"),
)


def check_sources(report: Report) -> None:
    """Refuse a report whose logs are missing, name an unknown format or fit in no archive."""
    for suite in report.suites:
        for source in suite.sources:
            try:
                _check_source(source)
            except ReperfError as fault:
                raise ReperfError(f"suite {suite.name}: from: {fault}") from None


def _check_source(source: LogSource) -> None:
    path = source.path
    if not os.path.lexists(path):
        raise ReperfError(f"{path} is not there; allowed: a log, or a folder or a zip of logs")
    if not os.path.isfile(path) and not os.path.isdir(path):  # noqa: PTH112, PTH113 - never raise
        raise ReperfError(f"{path} is neither a file nor a folder")
    if source.format is not None:
        format_called(source.format)
    files = files_of(path)
    if not files:
        raise ReperfError(f"{path}: {NO_LOG}")
    for file in files:
        if FILLED_IN.search(str(file)):
            raise ReperfError(f"{shown(str(file))}; {NOT_FILLED_IN}")
        name = file.relative_to(path.parent).as_posix()
        if fault := fault_of_name(name):
            raise ReperfError(f"{shown(str(file))} {fault}")


def measure_suite(
    suite: Suite, runs: Iterable[Run], plans: Mapping[str, str] | None = None
) -> list[Row]:
    """Measure all that a suite names: its own runs, and the logs of others.

    Args:
        plans: a run's folder -> the digest of its plan; None: of any plan.

    Returns:
        The rows of measurements.csv, see reperf.tables.MEASUREMENTS.
    """
    method = Method(window=suite.window, unit=suite.unit, step_times=True)
    plan_of = (plans or {}).get
    duplicates = DuplicateFinder()
    results = [own_run(run, method, plan_of(str(run.folder))) for run in runs]
    measured = [(row_of(suite, result), result) for result in results]
    checked = [
        (_check_not_duplicate(row, result, duplicates), result)
        for row, result in _check_repeats(measured)
    ]
    for source in suite.sources:
        checked += _measure_source(suite, source, duplicates)
    return _warned(checked)


def _measure_source(
    suite: Suite, source: LogSource, duplicates: DuplicateFinder
) -> list[_Measured]:
    request = MeasureRequest(
        method=Method(source.method, source.window or suite.window, suite.unit, step_times=True),
        log_format=source.format,
        facts=[(SOURCE, expected_facts(suite, source))],
        digests=True,
    )
    results = measure_paths([source.path], request)
    measured = sorted(
        ((row_of(suite, result, source), result) for result in results),
        key=lambda pair: _sort_key(pair[0]),
    )
    cells: dict[tuple[Any, ...], Facts] = defaultdict(Facts)
    repeats: Counter[tuple[Any, ...]] = Counter()
    rows = []
    for row, result in _check_repeats(measured):
        row = _check_same_setup(row, result, cells)  # noqa: PLW2901
        row = _check_not_duplicate(row, result, duplicates)  # noqa: PLW2901
        repeats[_cell(row)] += 1
        rows.append((row | {"repeat": repeats[_cell(row)]}, result))
        if not row["topology"]:
            print(printable(f"{row['log']}: in no cell: {row['reason']}"), file=sys.stderr)
    return rows


def _check_repeats(measured: Iterable[_Measured]) -> list[_Measured]:
    """The rows of a suite; runs with other images or variables than their repeats are refused."""
    return _check_same_variables(_check_same_images(measured))


def _check_same_variables(measured: list[_Measured]) -> list[_Measured]:
    """The rows of a suite; runs whose shells had other variables than most repeats' are refused.

    In a tie, the variables of the last run count.
    """
    usual = {}
    for cell, records in _records_of_cells(measured).items():
        often = Counter(_given(record) for record in records)
        usual[cell] = max(records, key=lambda record: (often[_given(record)], record.started))
    checked = []
    for row, result in measured:
        run, most = result.record, usual.get((row["source"], _cell(row)))
        if row["status"] == "ok" and run and most and _given(run) != _given(most):
            row = _refused(row, _other_variables(run, most))  # noqa: PLW2901
        checked.append((row, result))
    return checked


def _records_of_cells(measured: Iterable[_Measured]) -> dict[tuple[Any, ...], list[RunRecord]]:
    cells = defaultdict(list)
    for row, result in measured:
        if row["status"] == "ok" and result.record:
            cells[row["source"], _cell(row)].append(result.record)
    return cells


def _warned(measured: list[_Measured]) -> list[Row]:
    """The rows of a suite, with what runs' records say against them or their repeats."""
    differ = {
        cell
        for cell, records in _records_of_cells(measured).items()
        if differences(map(key_of, records), records)
    }
    rows = []
    for row, result in measured:
        counts = row["status"] == "ok" and result.record is not None
        warnings = {
            row["warnings"]: True,
            "not-one-thing": counts and (row["source"], _cell(row)) in differ,
            "trained-again": counts and result.record and result.record.ended_well_before,
        }
        said = ", ".join(str(code) for code, holds in warnings.items() if code and holds)
        rows.append(row | {"warnings": said})
    return rows


def _given(record: RunRecord) -> frozenset[tuple[str, str]]:
    """The variables of its shell that a run must share with its repeats, and their values."""
    return frozenset(of_repeats(record.inherited).items())


def _other_variables(run: RunRecord, most: RunRecord) -> str:
    """Why a run is no repeat of most others: the variables that differ, with both values."""
    values = [dict(_given(record)) for record in (run, most)]
    told = []
    for name in sorted({name for name, _ in _given(run) ^ _given(most)}):
        was = (repr(given[name]) if name in given else "not set" for given in values)
        told.append(f"{name} was {' and '.join(was)}")
    return (
        f"{'; '.join(told)}, in its shell and in that of {most.run.log}: not a repeat; allowed: "
        "one setting for all repeats, and --forcerun trains under today's"
    )


def _check_same_images(measured: Iterable[_Measured]) -> list[_Measured]:
    """The rows of a suite, refused where the folder that they read held other images meanwhile.

    Its content when the last run started counts: new runs can be repeats of that.
    """
    measured = list(measured)
    last: dict[str | None, RunRecord] = {}
    read = [one.record for row, one in measured if row["status"] == "ok" and _reads_folder(one)]
    for record in sorted(filter(None, read), key=lambda record: record.started):
        last[record.run.data] = record
    checked = []
    for row, result in measured:
        then = result.record
        now = last.get(then.run.data) if then else None
        counts = row["status"] == "ok" and _reads_folder(result)
        if counts and then and now and then.data_sha256 != now.data_sha256:
            row = _refused(row, _other_images(then, now))  # noqa: PLW2901
        checked.append((row, result))
    return checked


def _reads_folder(result: RunResult) -> bool:
    """Whether a run read images as they lie in a folder, and its record says which."""
    record = result.record
    return bool(record and record.run.input == "folder" and record.data_sha256)


def _other_images(then: RunRecord, now: RunRecord) -> str:
    """Why a run is no repeat of the last one: in words, the folder and what it held for both."""
    held = (
        f"{record.data_set.samples if record.data_set else 'other'} images, "
        f"SHA-256 {(record.data_sha256 or '')[:12]}"
        for record in (then, now)
    )
    return (
        f"{then.run.data} held {next(held)} when it trained, and {next(held)} when {now.run.log} "
        "did: same name, other data; allowed: one set, and --forcerun trains on today's"
    )


def _check_same_setup(row: Row, result: RunResult, cells: Mapping[tuple[Any, ...], Facts]) -> Row:
    """The row of a log, refused if another log of its cell trained something else."""
    if row["status"] == "ok":
        run = result.measured.run
        log = f"{row['log']}, run {run}" if run > 1 else str(row["log"])
        try:
            cells[_cell(row)].add(log, ((name, result.facts.get(name)) for name in _OF_A_CELL))
        except Refused as refusal:
            return _refused(row, str(refusal))
    return row


def _refused(row: Row, reason: str) -> Row:
    return row | dict.fromkeys(_OF_OK) | {"status": "refused", "reason": reason}


def _check_not_duplicate(row: Row, result: RunResult, duplicates: DuplicateFinder) -> Row:
    """The row of a run, refused if another row counts it already."""
    if row["status"] != "ok":
        return row
    reason = duplicates.reason(str(row["log"]), _cell(row), result)
    return _refused(row, reason) if reason else row


def _cell(row: Row) -> tuple[Any, ...]:
    parts = "system", "variant", "parallel", "servers", "batch_size_per_device", "topology"
    return tuple(row[name] for name in parts)


def expected_facts(suite: Suite, source: LogSource) -> list[Fact]:
    """All that a suite says about the logs of a source; a log that contradicts it is refused."""
    workload = load_workloads()[suite.workload]
    nodes, devices = topology_shape(source.topology) if source.topology else (None, None)
    return [
        ("workload", suite.workload),
        ("recipe", workload.recipe_name),
        ("parameters", workload.parameters_of(suite.shape)),
        ("precision", suite.precision),
        ("nodes", nodes),
        ("devices_per_node", devices),
        ("batch_size", None if suite.batch_size == LARGEST else suite.batch_size),
        # Logs of others may add up gradients without saying so.
        ("accumulation", suite.accumulation if suite.accumulation > 1 else None),
        *((Setting(key), size) for key, size in suite.shape.items()),
        ("input", suite.input),
        ("data_set", suite.data),
        ("proof", False),
        *facts_of_system(source.system, source.variant),
    ]


def row_of(suite: Suite, result: RunResult, source: LogSource | None = None) -> Row:
    """One row of measurements.csv.

    Args:
        source: where the log is from; None for a run made here.
    """
    measured, facts, run = result.measured, result.facts, result.run
    if run is not None:
        nodes, devices, batch = run.nodes, run.devices_per_node, run.batch_size
    else:
        nodes, devices = facts.get("nodes"), facts.get("devices_per_node")
        batch = facts.batch_per_device
    placed = run is not None or None not in (nodes, devices, batch)
    log_format = format_called(measured.format) if measured.format else None
    status, reason = _verdict(suite, result, placed)
    if status == "ok" and source and log_format and (why := _not_theirs(source, log_format)):
        status, reason = "refused", why
    also, also_unit = _also(suite, measured) if status == "ok" else (None, "")
    system = run.system if run else (log_format and log_format.system) or "unknown"
    variant = run.shown_variant if run else None
    parallel = run.identity["parallel"] if run else facts.get("parallel")
    log, shape = measured.log, written_shape(suite.shape)
    if source is not None:
        system = source.system or system
        if not run:  # of a log of ours without a record: as an entry with its switches is named
            several = facts.get("accumulation") if log_format is mllog.FORMAT else None
            variant = shown_variant(variant_said(facts, system), several)
        variant = source.variant or variant
        log = f"{source.id}{log.removeprefix(str(source.path))}"
    return {
        "suite": suite.name,
        "system": system,
        "workload": suite.workload,
        "precision": suite.precision,
        "variant": variant,
        "batch_size_per_device": batch,
        "topology": f"{nodes}n{devices}g" if placed else "",
        "num_nodes": nodes,
        "devices_per_node": devices,
        "repeat": None if source or run is None else run.repeat,
        "status": status,
        "reason": reason,
        "throughput": measured.throughput if status == "ok" else None,
        "unit": _unit(suite, measured),
        "first": measured.first,
        "last": measured.last,
        "samples": measured.samples,
        "seconds": measured.seconds,
        "method": measured.method,
        "global_batch": measured.global_batch or (run and run.global_batch),
        "world_size": measured.world_size or (run and run.world_size),
        "log": log,
        "log_sha256": result.digest,
        "source": source.id if source else "",
        "waited": measured.waited if status == "ok" else None,
        "also_throughput": also,
        "also_unit": also_unit,
        "start_loss": measured.start_loss,
        **(run.setting if run else {"input": suite.input, "shape": shape, "device": ""}),
        "parallel": None if parallel == DATA_PARALLEL else parallel,
        "servers": run.identity["servers"] if run else None,
        **record_columns(result.record, measured),
        "unconfirmed": ", ".join(_unconfirmed(facts)),
        "warnings": ", ".join(warning.partition(":")[0] for warning in measured.warnings),
        "step_times": result.fingerprint.step_times if result.fingerprint else "",
    }


def _unconfirmed(facts: Facts) -> Iterator[str]:
    """What the configuration alone says of a log, and no number in it could contradict."""
    tellers = facts.tellers()
    yield from (called(name) for name in _CLAIMS if tellers.get(name) == SOURCE)
    if tellers.get("batch_size") != SOURCE or not (whole := facts.get("global_batch")):
        return
    fits = facts.batch_fits
    if SOURCE not in tellers["global_batch"]:  # of accumulated batches, nobody may know how many
        replicas = facts.get("replicas") or (facts.get("world_size") or 0) // (
            facts.get("tensor") or 1
        )
        batches = facts.get("accumulation") or 1
        fits = whole == facts.get("batch_size") * batches * replicas
    if not fits:
        yield called("batch_size")


def _not_theirs(source: LogSource, log_format: Format) -> str:
    """Why logs of a format are not of the system that a source says; empty if they may be."""
    try:
        Facts().add("the log's format", facts_of_format(log_format)).add(
            SOURCE, facts_of_system(source.system, None)
        )
    except Refused as refusal:
        return str(refusal)
    return ""


def _unit(suite: Suite, measured: Measurement) -> str:
    """The unit of a row: that of the log's samples, if the suite counts samples."""
    asked = per_second(suite.unit or ANY)
    return (measured.unit or asked) if asked == unit_of(suite.workload) else asked


def _also(suite: Suite, measured: Measurement) -> tuple[float | None, str]:
    """What the workload counts besides what the suite does, if the log counts it, per second."""
    units = load_workloads()[suite.workload].units
    for unit in units:
        # Of samples that a batch may leave empty, such as places, a log counts those that are not.
        count = measured.counted.get(unit, measured.counted.get(ANY) if unit == units[0] else None)
        if unit != suite.unit and count is not None and measured.seconds:
            return count / measured.seconds, per_second(unit)
    return None, ""


def _sort_key(row: Row) -> tuple[Any, ...]:
    """The sort key of a row among those of its source: small topologies first."""
    size = row["num_nodes"] or 0, row["devices_per_node"] or 0
    batch = row["batch_size_per_device"] or 0
    return row["system"], row["variant"] or "", batch, size, natural_sort_key(str(row["log"]))


def _verdict(suite: Suite, result: RunResult, placed: bool) -> tuple[str, str]:
    measured, record = result.measured, result.record
    if record is not None and record.status != "ok":
        return record.status, record.reason
    others = {per_second(count) for count in all_counts()} - {
        per_second(suite.unit or ANY),
        per_second(ANY),
    }
    if measured.status == "ok" and measured.unit in others:
        return "refused", f"it counts {measured.unit}, which is not what {suite.workload} counts"
    if measured.status == "ok" and not placed:
        return "refused", (
            "nothing says its batch size per device, its nodes and the devices on each; allowed: "
            "a folder such as 2n8g around it, or batch_size and topology in the configuration"
        )
    return measured.status, measured.reason


def record_columns(record: RunRecord | None, measured: Measurement) -> Row:
    """What a run's record adds to its row: where and when it ran, beside what, and what it took.

    Returns:
        Columns of measurements.csv; empty where there is no record, or it does not say.
    """
    row: Row = dict.fromkeys(_OF_RECORD)
    if record is None:
        return row
    row |= {
        "hosts": " ".join(record.nodes or (record.host.hostname,)),
        "date": record.started,
        "commit": record.commit,
        "key": key_of(record),
        "shared_cpus": record.run.shared_cpus,
    }
    if load := record.load:
        row |= {"load_before": load.before, "load_during": load.during}
        row["gpu_processes"] = load.gpu_processes
    row |= _held_back(record, measured) | {"estimated_memory": estimated_memory(record.run)}
    if record.peak_memory_bytes:
        row["peak_memory"] = max(record.peak_memory_bytes)
        row["peak_memory_is"] = record.peak_memory_is
        row["stage_memory"] = _stage_memory(record)
    alone = {rank: one for rank, one in enumerate(record.rank_seconds_alone) if one}
    if len(alone) > 1:
        slowest = max(alone, key=alone.__getitem__)
        others = median(one for rank, one in alone.items() if rank != slowest)
        row |= {"slowest_rank": slowest, "slowest_rank_behind": alone[slowest] / others - 1}
    if measured.status == "ok":
        row["joules"] = _joules(record, measured)
        row["matrix_rate"] = record.matrix_rate
        models = {gpu.name for gpu in record.host.gpus}
        if record.run.device == "cuda" and len(models) == 1:
            row["data_sheet_rate"] = data_sheet_rate(models.pop(), record.run.precision)
    return row


def _held_back(record: RunRecord, measured: Measurement) -> Row:
    """The most of its time that anything held a run's devices back, and their clock, MHz."""
    load, power = record.load, _power_of(record, measured)
    shares = [part.throttled for part in (load, power) if part and part.throttled is not None]
    on_gpus = record.run.device == "cuda"
    clock = (power and power.mean_mhz) if on_gpus else (load and load.mhz)
    return {"throttled": max(shares, default=None), "mhz": clock}


def _stage_memory(record: RunRecord) -> str | None:
    """The most memory of a device of each stage, bytes; all share one stage without a pipeline."""
    parallel, taken = record.run.parallel, record.peak_memory_bytes
    stages = (parallel.pipeline if parallel else ()) or (record.run.world_size,)
    if len(taken) != sum(stages):
        return None
    ranks = iter(taken)
    return " ".join(str(max(islice(ranks, replicas))) for replicas in stages)


def _joules(record: RunRecord, measured: Measurement) -> float | None:
    """What all GPUs of a run took in the measured window; None if some of it was not metered."""
    power = _power_of(record, measured)
    metered = power and record.nodes and set(record.nodes) <= set(power.nodes)
    return power.energy_joules if power and metered else None


def _power_of(record: RunRecord, measured: Measurement) -> Power | None:
    """What was metered of a run, if it was in the measured window."""
    power = record.power
    ends = measured.first, measured.last
    return power if power and (power.first, power.last) == ends else None
