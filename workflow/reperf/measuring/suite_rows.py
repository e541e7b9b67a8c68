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
from reperf.errors import ReperfError, faults_of
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
from reperf.measuring.variants import facts_of_format, facts_of_system, variant_of_switches
from reperf.member_names import fault_of_name, shown
from reperf.records.cell_key import differences, key_of
from reperf.records.run_record import RunRecord
from reperf.records.shell import of_repeats
from reperf.systems.gpu_rules import data_sheet_rate
from reperf.systems.workloads import load_workloads, written_shape
from reperf.tables import MEASUREMENTS
from reperf.text import natural_sort_key, printable
from reperf.values import FILLED_IN, NOT_FILLED_IN

Row = dict[str, Any]
_Measured = tuple[Row, RunResult]

SOURCE = "the configuration"
_OF_OK = ("throughput", "waited", "also_throughput", "also_unit")
"""The columns of a row that only a run which counts has."""
_CLAIMS: tuple[FactName, ...] = ("workload", "precision", "world_size")
"""What a row is compared by: it says which of these the configuration alone claims."""
_OF_A_CELL: tuple[FactName, ...] = ("framework", "device", "data_set", "platform")
"""What no suite need say, and repeats must have in common."""


def check_sources(report: Report) -> None:
    """Refuse a report whose logs are missing, name an unknown format or fit in no archive."""
    for suite in report.suites:
        for source in suite.sources:
            with faults_of(f"suite {suite.name}: from"):
                _check_source(source)


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
        if fault := fault_of_name(file.relative_to(path.parent).as_posix()):
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
    _refuse_other_repeats(measured)
    for row, result in measured:
        _refuse_duplicate(row, result, duplicates)
    for source in suite.sources:
        measured += _measure_source(suite, source, duplicates)
    _warn(measured)
    return [row for row, _ in measured]


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
    measured = [(row_of(suite, result, source), result) for result in results]
    measured.sort(key=lambda pair: _sort_key(pair[0]))
    _refuse_other_repeats(measured)
    setups: dict[tuple[Any, ...], Facts] = defaultdict(Facts)
    repeats: Counter[tuple[Any, ...]] = Counter()
    for row, result in measured:
        cell = _cell(row)
        if row["status"] == "ok":
            log = row["log"] + (f", run {result.measured.run}" if result.measured.run > 1 else "")
            try:
                setups[cell].add(log, [(name, result.facts.get(name)) for name in _OF_A_CELL])
            except Refused as refusal:
                _refuse(row, str(refusal))
        _refuse_duplicate(row, result, duplicates)
        repeats[cell] += 1
        row["repeat"] = repeats[cell]
        if not row["topology"]:
            print(printable(f"{row['log']}: in no cell: {row['reason']}"), file=sys.stderr)
    return measured


def _refuse(row: Row, reason: str) -> None:
    row |= dict.fromkeys(_OF_OK) | {"status": "refused", "reason": reason}


def _refuse_duplicate(row: Row, result: RunResult, duplicates: DuplicateFinder) -> None:
    """Refuse a run that another row counts already."""
    if row["status"] == "ok" and (why := duplicates.reason(row["log"], _cell(row), result)):
        _refuse(row, why)


def _recorded_cells(measured: Iterable[_Measured]) -> list[list[tuple[Row, RunRecord]]]:
    """The rows that count and have a record, cell by cell."""
    cells = defaultdict(list)
    for row, result in measured:
        if row["status"] == "ok" and result.record:
            cells[row["source"], _cell(row)].append((row, result.record))
    return list(cells.values())


def _refuse_other_repeats(measured: Iterable[_Measured]) -> None:
    """Refuse runs that read other images than the last run, or had other variables than most.

    In a tie, the variables of the last run count.
    """
    images = [
        pair
        for pairs in _recorded_cells(measured)
        for pair in pairs
        if pair[1].run.input == "folder" and pair[1].data_sha256
    ]
    last = {run.run.data: run for _, run in sorted(images, key=lambda pair: pair[1].started)}
    for row, run in images:
        if run.data_sha256 != last[run.run.data].data_sha256:
            _refuse(row, _other_images(run, last[run.run.data]))
    for pairs in _recorded_cells(measured):
        often = Counter(_given(run) for _, run in pairs)
        _, most = max(pairs, key=lambda pair: (often[_given(pair[1])], pair[1].started))
        for row, run in pairs:
            if _given(run) != _given(most):
                _refuse(row, _other_variables(run, most))


def _warn(measured: Iterable[_Measured]) -> None:
    """Add what runs' records say against them or their repeats to the warnings of their rows."""
    for pairs in _recorded_cells(measured):
        records = [record for _, record in pairs]
        differ = differences(map(key_of, records), records)
        for row, record in pairs:
            codes = (
                row["warnings"],
                "not-one-thing" if differ else "",
                "trained-again" if record.ended_well_before else "",
            )
            row["warnings"] = ", ".join(filter(None, codes))


def _given(record: RunRecord) -> frozenset[tuple[str, str]]:
    """The variables of its shell that a run must share with its repeats, and their values."""
    return frozenset(of_repeats(record.inherited).items())


def _other_variables(run: RunRecord, most: RunRecord) -> str:
    """Why a run is no repeat of most others: the variables that differ, with both values."""
    values = [dict(_given(record)) for record in (run, most)]
    differing = []
    for name in sorted({name for name, _ in _given(run) ^ _given(most)}):
        was = (repr(given[name]) if name in given else "not set" for given in values)
        differing.append(f"{name} was {' and '.join(was)}")
    return (
        f"{'; '.join(differing)}, in its shell and in that of {most.run.log}: not a repeat; "
        "allowed: one setting for all repeats, and --forcerun trains under today's"
    )


def _other_images(then: RunRecord, now: RunRecord) -> str:
    """Why a run is no repeat of the last one: in words, the folder and what it held for both."""
    contents = (
        f"{record.data_set.samples if record.data_set else 'other'} images, "
        f"SHA-256 {(record.data_sha256 or '')[:12]}"
        for record in (then, now)
    )
    return (
        f"{then.run.data} held {next(contents)} when it trained, and {next(contents)} when "
        f"{now.run.log} did: same name, other data; allowed: one set, and --forcerun trains on "
        "today's"
    )


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


def columns_of(result: RunResult) -> Row:
    """The columns of measurements.csv that a log and the record beside it fill; others are None."""
    measured = {
        name: value for name, value in vars(result.measured).items() if name in MEASUREMENTS
    }
    row = dict.fromkeys(MEASUREMENTS) | measured | record_columns(result.record, result.measured)
    return row | {
        "log_sha256": result.digest,
        "warnings": ", ".join(text.partition(":")[0] for text in result.measured.warnings),
        "step_times": result.fingerprint.step_times if result.fingerprint else "",
    }


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
    also, also_unit = _also(suite, measured)
    system = run.system if run else (log_format and log_format.system) or "unknown"
    variant = run.shown_variant if run else None
    parallel = run.identity["parallel"] if run else facts.get("parallel")
    log = measured.log
    if source is not None:
        system = source.system or system
        if not run:  # of a log of ours without a record: as an entry with its switches is named
            several = facts.get("accumulation") if log_format is mllog.FORMAT else None
            variant = shown_variant(variant_of_switches(facts, system), several)
        variant = source.variant or variant
        log = f"{source.id}{log.removeprefix(str(source.path))}"
    asked = {"input": suite.input, "shape": written_shape(suite.shape), "device": ""}
    row = columns_of(result) | {
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
        "unit": _unit(suite, measured),
        "global_batch": measured.global_batch or (run and run.global_batch),
        "world_size": measured.world_size or (run and run.world_size),
        "log": log,
        "source": source.id if source else "",
        "also_throughput": also,
        "also_unit": also_unit,
        **(run.setting if run else asked),
        "parallel": None if parallel == DATA_PARALLEL else parallel,
        "servers": run.identity["servers"] if run else None,
        "unconfirmed": ", ".join(_unconfirmed(facts)),
    }
    return row if status == "ok" else row | dict.fromkeys(_OF_OK)


def _unconfirmed(facts: Facts) -> Iterator[str]:
    """What the configuration alone says of a log, and no number in it could contradict."""
    sources = facts.sources()
    yield from (called(name) for name in _CLAIMS if sources.get(name) == SOURCE)
    if sources.get("batch_size") != SOURCE or not (whole := facts.get("global_batch")):
        return
    fits = facts.batch_fits
    if SOURCE not in sources["global_batch"]:  # of accumulated batches, nobody may know how many
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
        Columns of measurements.csv; none where there is no record.
    """
    if record is None:
        return {}
    run, load, power = record.run, record.load, record.power
    if power and (power.first, power.last) != (measured.first, measured.last):
        power = None  # it was not metered in the measured window
    on_gpus, counts = run.device == "cuda", measured.status == "ok"
    # The most of its time that anything held the run's devices back.
    throttled = [part.throttled for part in (load, power) if part and part.throttled is not None]
    models = {gpu.name for gpu in record.host.gpus} if on_gpus else set()
    one_model = counts and len(models) == 1
    rate = data_sheet_rate(models.pop(), run.precision) if one_model else None
    metered = power and record.nodes and set(record.nodes) <= set(power.nodes)
    alone = {rank: one for rank, one in enumerate(record.rank_seconds_alone) if one}
    slowest = max(alone, key=alone.__getitem__) if len(alone) > 1 else None
    others = [one for rank, one in alone.items() if rank != slowest]
    return {
        "hosts": " ".join(record.nodes or (record.host.hostname,)),
        "date": record.started,
        "commit": record.commit,
        "key": key_of(record),
        "shared_cpus": run.shared_cpus,
        "load_before": load and load.before,
        "load_during": load and load.during,
        "gpu_processes": load and load.gpu_processes,
        "throttled": max(throttled, default=None),
        "mhz": (power and power.mean_mhz) if on_gpus else (load and load.mhz),
        "estimated_memory": estimated_memory(run),
        "peak_memory": max(record.peak_memory_bytes, default=None),
        "peak_memory_is": record.peak_memory_is if record.peak_memory_bytes else None,
        "stage_memory": _stage_memory(record),
        "slowest_rank": slowest,
        "slowest_rank_behind": None if slowest is None else alone[slowest] / median(others) - 1,
        "joules": power.energy_joules if counts and power and metered else None,
        "matrix_rate": record.matrix_rate if counts else None,
        "data_sheet_rate": rate,
    }


def _stage_memory(record: RunRecord) -> str | None:
    """The most memory of a device of each stage, bytes; all share one stage without a pipeline."""
    parallel, taken = record.run.parallel, record.peak_memory_bytes
    stages = (parallel.pipeline if parallel else ()) or (record.run.world_size,)
    if len(taken) != sum(stages):
        return None
    ranks = iter(taken)
    return " ".join(str(max(islice(ranks, replicas))) for replicas in stages)
