"""What a report asks for before it starts: runs, hours, downloads, disk, memory."""

import csv
import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod
from pathlib import Path
from shutil import disk_usage
from statistics import median
from typing import NamedTuple

from reperf.builds import Build, ImageBuild, LockBuild, SiteBuild, build_of, why_build
from reperf.config import Report, Run, topology_shape
from reperf.config.run import estimated_memory
from reperf.config.words import LARGEST
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.layout import RUN_FOLDER, RUN_RECORD
from reperf.machine import visible_gpus
from reperf.number_format import gibibytes
from reperf.plans.planning import Plans
from reperf.plans.run_plan import TIME_LIMITS, RunPlan
from reperf.records.diagnosis import hosts_seen
from reperf.records.run_record import RunRecord
from reperf.systems.gpu_rules import RATES, data_sheet_rate, model_of
from reperf.systems.workloads import load_workloads
from reperf.terminal import table_lines
from reperf.text import count

LOG_BYTES = 2 * 10**6  # a run's log and record, including tries and copies; 200 kB is usual
UNKNOWN_BYTES = {"cpu": 2 * 10**9, "cuda": 12 * 10**9}
"""Assumed for an unpacked build of unknown size, by device: more than any known build has."""
TRIALS = 10  # runs of a few iterations that a search for the largest batch usually takes
DAY = 24  # hours


class Cost(NamedTuple):
    """What a run, or a search, takes of the machine or of the cluster's nodes."""

    suite: str
    entry: str
    topology: str
    typical: float  # hours of a node; of this machine, which has one run at a time
    most: float  # likewise, if it takes all of its time limit
    by: str  # what `typical` is from


def describe_costs(report: Report) -> Iterator[str]:
    """Describe what a report whose device is decided asks for, line by line; nothing is started."""
    plans = Plans(report)
    searches = [plan for path, plan in plans.searches.items() if not has_ended(path, plan)]
    to_come = [plan for plan in plans.runs.values() if not has_ended(plan.run.record, plan)]
    ended = len(plans.runs) - len(to_come)
    devices = dict.fromkeys(map(report.device_of, report.suites))
    yield (
        f"{report.title}: {count(len(plans.runs), 'run')} on {' and '.join(devices)}"
        f"{f', {ended} of which have ended' if ended else ''}"
    )
    costs, of_searches = _costs(report, to_come, searches)
    on_nodes = report.cluster is not None and report.cluster.nodes > 1
    if costs:
        yield ""
        yield from table_of_costs(costs, on_nodes=on_nodes)
        yield ""
        for by, runs in Counter(cost.by for cost in costs).items():
            yield f"time of {count(runs, 'run')}: {by}"
    if of_searches:
        searching = count(len(of_searches), "search")
        unit = " node-hours" if on_nodes else ""
        yield f"{searching} for the largest batch: {_both(of_searches, on_nodes)}{unit}"
    if costs or of_searches:
        yield _duration(report, [*costs, *of_searches])
    yield from _ranking(plans)
    trained = [plan.run for plan in (*to_come, *searches)]
    yield from _downloads(trained)
    yield from _room(report, trained)
    yield from _memory(trained)
    yield from _shared(report)
    yield from _unsupported(report)


def needed_bytes(report: Report, built: dict[str, str | None]) -> int:
    """An estimate on the safe side: runs, environments and record files that are not there yet.

    `built` is build -> SHA-256 of what it was made from; None: not made, or of another recipe.
    """
    runs = [(run, report.data_of(suite)) for suite in report.suites for run in report.runs(suite)]
    missing = [run for run, _ in runs if not run.record.exists()]
    read = [(run, data) for run, data in runs if run.input != "folder"]
    converted = {run.data: data for run, data in read if run.data and data}
    to_convert = [
        data for folder, data in converted.items() if not Path(folder, "manifest.json").exists()
    ]
    to_build = {
        (build := build_of(run)).folder: (build, run.device)
        for run, _ in runs
        if not run.environment and built[build_of(run).id] is None
    }
    return (
        len(missing) * LOG_BYTES
        + sum(data.of_kind.record_bytes() for data in to_convert)
        + sum(
            _unpacked_bytes(build) or UNKNOWN_BYTES[device] for build, device in to_build.values()
        )
        + sum(data.of_kind.embedded_bytes for data in report.data if data.is_embedded)
    )


def table_of_costs(costs: Collection[Cost], *, on_nodes: bool) -> Iterator[str]:
    """A line for each suite: its runs on each topology, and how long they take."""
    suites: dict[str, list[Cost]] = defaultdict(list)
    for cost in costs:
        suites[cost.suite].append(cost)
    topologies = sorted({cost.topology for cost in costs}, key=_devices)
    unit = "node-hours" if on_nodes else "time"
    headings = ("suite", "systems", *topologies, "runs", f"{unit} (at most)")
    rows = []
    for name, of_suite in [*suites.items(), ("all", [*costs])]:
        times = Counter(cost.topology for cost in of_suite)
        numbers = (f"{times[topology]:,}" if times[topology] else "-" for topology in topologies)
        entries = {cost.entry for cost in of_suite}
        time = _both(of_suite, on_nodes)
        rows.append((name, str(len(entries)), *numbers, f"{len(of_suite):,}", time))
    yield from table_lines(headings, headings[:1], rows)


def _costs(
    report: Report, runs: Iterable[RunPlan], searches: Iterable[RunPlan]
) -> tuple[list[Cost], list[Cost]]:
    times = _TypicalTimes(report)

    def cost(plan: RunPlan, *, tries: int = 1, limits: int = 1) -> Cost:
        run, limit = plan.run, plan.aside.time_limit
        seconds, by = times.of(run, limit)
        hours_a_second = _nodes(report, run) / 3600
        most = hours_a_second * limits * limit
        hours = min(most, hours_a_second * tries * seconds)
        return Cost(run.suite, run.entry, run.topology, hours, most, by)

    return (
        [cost(plan) for plan in runs],
        [cost(plan, tries=TRIALS, limits=TIME_LIMITS) for plan in searches],
    )


def _nodes(report: Report, run: Run) -> float:
    """The nodes that nothing else can use while a run trains; a part of one if it shares it."""
    cluster = report.cluster
    if cluster and not cluster.exclusive and run.device == "cuda":
        return run.world_size / cluster.devices_per_node
    return run.nodes


def _summed(costs: Collection[Cost]) -> tuple[float, float]:
    return sum(cost.typical for cost in costs), sum(cost.most for cost in costs)


def _both(costs: Collection[Cost], on_nodes: bool) -> str:
    typical, most = map(_short if on_nodes else _in_words, _summed(costs))
    return f"{typical} ({most})"


def _duration(report: Report, costs: Collection[Cost]) -> str:
    """How long all of it takes on the nodes that there are."""
    nodes = report.slurm.nodes if report.slurm else 1  # runs on hosts take turns
    typical, most = (_in_words(hours / nodes) for hours in _summed(costs))
    where = f"on {count(nodes, 'node')}" if report.slurm else "here"
    where += " if none of them waits" * (nodes > 1)
    return f"in all {typical} {where} (at most {most}); builds and failed runs come on top"


def _in_words(hours: float) -> str:
    if hours >= 2 * DAY:
        return f"{_short(hours / DAY)} days"
    return f"{_short(hours)} h" if hours >= 1 else f"{_short(hours * 60)} min"


def _ranking(plans: Plans) -> Iterator[str]:
    """Whether the repeats of suites can tell their systems apart, even where none overlap."""
    from reperf.measuring.statistics import repeats_to_resolve  # noqa: PLC0415 - pandas: 0.5 s

    suites: dict[str, list[str]] = defaultdict(list)
    for name, plan in plans.suites.items():
        trained = Counter(cell.runs[0].topology for cell in plan.cells if not cell.unsupported)
        systems = max(trained.values(), default=0)
        if systems > 1:
            repeats, needed = plan.suite.repeats, repeats_to_resolve(systems - 1)
            can = "can" if repeats >= needed else "cannot"
            line = f"{count(repeats, 'repeat')} {can} rank {systems} systems"
            suites[line if can == "can" else f"{line}; {needed} can"].append(name)
    for line, names in suites.items():
        yield f"{line}: {', '.join(names)}"


def _devices(topology: str) -> int:
    return prod(topology_shape(topology))


def _short(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def has_ended(record: Path | str, plan: RunPlan) -> bool:
    """Whether a run or search has a record of this plan; measuring checks the record itself."""
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        return bool(json.loads(Path(record).read_bytes())["plan"] == plan.digest)
    return False


def _downloads(runs: Iterable[Run]) -> Iterator[str]:
    """The builds that must be made or pulled first."""
    # Systems may have one in common.
    builds = {build.folder: build for build in map(build_of, runs)}
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    for build in sorted(builds.values(), key=lambda build: build.id):
        if not isinstance(build, SiteBuild) and why_build(build):
            system = build.system if isinstance(build, ImageBuild) else build.system.host
            users[_described(build)].append(system.id)
    for (what, size), systems in users.items():
        yield f"to download: {what} for {', '.join(systems)}: {size}"


def _described(build: LockBuild | ImageBuild) -> tuple[str, str]:
    if isinstance(build, ImageBuild):
        return f"image {build.container.image}", "size unknown"
    packages = build.lock.read_text(encoding="utf-8").count("==")
    sizes = sizes_of(build.lock)
    size = "{}, {} once unpacked".format(*map(gibibytes, sizes)) if sizes else "size unknown"
    return f"{count(packages, 'package')} of {build.lock.name}", size


def _unpacked_bytes(build: Build) -> int | None:
    sizes = sizes_of(build.lock) if isinstance(build, LockBuild) else None
    return sizes and sizes[1]


def sizes_of(lock: Path) -> tuple[int, int] | None:
    """Bytes of a lock's packages, as downloaded and once unpacked.

    None if the lock has changed since envs/find_sizes.py asked the index for them.
    """
    sizes = lock.with_name("sizes.csv")
    if not sizes.exists():
        return None
    with sizes.open(encoding="utf-8", newline="") as stream:
        known = {(row["lock"], row["sha256"]): row for row in csv.DictReader(stream)}
    row = known.get((lock.name, sha256(lock)))
    return (int(row["bytes"]), int(row["unpacked"])) if row else None


def _room(report: Report, runs: Sequence[Run]) -> Iterator[str]:
    every = {build_of(run): run.device for suite in report.suites for run in report.runs(suite)}
    needed = needed_bytes(report, {build.id: None if why_build(build) else "" for build in every})
    unknown = {
        device
        for build, device in every.items()
        if not isinstance(build, SiteBuild) and why_build(build) and not _unpacked_bytes(build)
    }
    assumed = " and ".join(gibibytes(UNKNOWN_BYTES[device]) for device in sorted(unknown))
    builds = f", with {assumed} for each build of unknown size" if assumed else ""
    free = gibibytes(disk_usage(".").free)
    yield f"disk: up to {gibibytes(needed)} more{builds}; {free} are free here"
    devices = max((run.devices_per_node for run in runs), default=0)
    if report.memory_limit and devices:
        most = gibibytes(devices * report.memory_limit)
        yield f"memory: up to {most} of a node, {gibibytes(report.memory_limit)} a process"
    elif report.cluster and report.cluster.memory_mb:
        yield f"memory: {gibibytes(report.cluster.memory_mb * 2**20)} of each node"


def _memory(runs: Iterable[Run]) -> Iterator[str]:
    """Memory of a device that runs need, by suite, where their recipes estimate it."""
    entries: dict[str, dict[str, int]] = defaultdict(dict)
    for run in runs:
        if needed := estimated_memory(run):
            entries[run.suite][run.entry] = needed
    for suite, sizes in entries.items():
        listed = ", ".join(f"{entry} {gibibytes(size)}" for entry, size in sizes.items())
        yield f"memory of a device in {suite}, estimated: {listed}"


def _shared(report: Report) -> Iterator[str]:
    shared = report.hardware.shared | report.other_hardware.shared
    for topology, cpus in shared.items():
        devices = count(_devices(topology), "device")
        yield f"{topology}: {devices} share {count(cpus, 'CPU')}; such cells have no speedup"


def _unsupported(report: Report) -> Iterator[str]:
    """The reasons why cells cannot run, the one with most cells first."""
    why: dict[str, list[Run]] = defaultdict(list)
    for suite in report.suites:
        for cell in report.cells(suite):
            if cell.unsupported:
                why[cell.unsupported].append(cell.runs[0])
    for reason, runs in sorted(why.items(), key=lambda item: -len(item[1])):
        systems = ", ".join(dict.fromkeys(run.system for run in runs))
        yield f"unsupported: {count(len(runs), 'cell')} of {systems}: {reason}"


START_SECONDS = {"cpu": 8, "cuda": 40}  # until the first iteration, with imports and compiling
ITERATION_SECONDS = 0.1  # an iteration whose floating-point operations nobody has counted
SAMPLES = 256  # a batch that a search has not found yet
USUAL = "H100"  # what is assumed of GPUs that are not known
SHARE = 0.15
"""Of a GPU's rate that training reaches: ResNet-50 in fp16 on an H200, see docs/results.md."""
CPU_RATE = 30e9  # floating-point operations a second that a thread of a CPU trains with, in fp32


class _TypicalTimes:
    """The usual times of the runs of a report whose device is decided."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._ended: dict[str, list[RunRecord]] = {}

    @cached_property
    def _gpu(self) -> tuple[str, str]:
        """The model of the GPUs that the report trains on, and why another one is taken."""
        cluster = self._report.cluster
        gpus = (
            [gpu for host in hosts_seen(cluster.partition) for gpu in host.gpus]
            if cluster
            else visible_gpus(os.environ)
        )
        for gpu in gpus:
            if model := model_of(gpu.name):
                return model, ""
        return USUAL, ", as the GPUs are not known"

    def of(self, run: Run, time_limit: float) -> tuple[float, str]:
        """Seconds that a run usually takes of those that it may, and what that is from."""
        seconds, by = self._as_ended_runs(run) or self._assumed(run)
        return min(seconds, time_limit), by

    def _as_ended_runs(self, run: Run) -> tuple[float, str] | None:
        """As ended runs of the cell took, else the entry's, else the suite's; None: none ended."""
        if run.suite not in self._ended:
            self._ended[run.suite] = list(_ended_runs(run.suite))
        like = [
            record
            for record in self._ended[run.suite]
            if (record.run.iterations, record.run.device) == (run.iterations, run.device)
            and run.batch_size in (LARGEST, record.run.batch_size)
        ]
        for alike in (("entry", "topology"), ("entry",), ()):
            seconds = [
                record.seconds
                for record in like
                if all(getattr(record.run, name) == getattr(run, name) for name in alike)
            ]
            if seconds:
                which = " and ".join(alike) or "suite"
                return median(seconds), f"median of ended runs of the same {which}"
        return None

    def _assumed(self, run: Run) -> tuple[float, str]:
        start = START_SECONDS[run.device]
        flops = load_workloads()[run.workload].flops_at(run.shape)
        if flops is None:
            seconds, how = ITERATION_SECONDS, f"{ITERATION_SECONDS:g} s an iteration"
        else:
            rate, how = self._rate(run)
            size = run.batch_size if isinstance(run.batch_size, int) else SAMPLES
            seconds = size * run.accumulation * flops / rate
        return start + run.iterations * seconds, f"assumed: {start} s to start, then {how}"

    def _rate(self, run: Run) -> tuple[float, str]:
        """Floating-point operations a second of a device while it trains, and what that is from."""
        if run.device == "cpu":
            how = f"the workload's FLOPs at {CPU_RATE / 1e9:g} GFLOP/s a thread"
            return CPU_RATE * run.threads, how
        model, why = self._gpu
        how = f"the workload's FLOPs at {100 * SHARE:g} % of the {model}'s rate{why}"
        of_precision = data_sheet_rate(model, run.precision) or RATES[model]["16 bits"]
        return SHARE * of_precision, how


def _ended_runs(suite: str) -> Iterable[RunRecord]:
    """The records in a suite's folder of runs that were trained to their end."""
    pattern = RUN_FOLDER.format(suite=suite, entry="*", topology="*", repeat="*")
    for path in sorted(Path().glob(f"{pattern}/{RUN_RECORD}")):
        with suppress(ReperfError):  # measuring tells what is wrong with it
            record = RunRecord.read(path)
            if record.status == "ok":
                yield record
