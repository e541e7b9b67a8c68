"""What a report asks for before it starts: runs, device hours, downloads, disk, memory."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from shutil import disk_usage

from reperf.builds import Build, ImageBuild, build_of, why_build
from reperf.config import Report, Run, Suite, topology_shape
from reperf.errors import ReperfError
from reperf.plans.checking import check_report
from reperf.plans.planning import Plans
from reperf.plans.run_plan import TIME_LIMITS, RunPlan
from reperf.printed import gibibytes
from reperf.text import count

AT_MOST = "device hours, at most"
LOG_BYTES = 2 * 10**6
"""A run's log and record, including tries and copies; 200 kB is usual."""
ENVIRONMENT_BYTES = {"cpu": 2 * 10**9, "cuda": 12 * 10**9}
"""One environment: PyTorch for CPUs took 1 GB, and CUDA's libraries take several times that."""


def describe_costs(report: Report, configfile: str) -> Iterator[str]:
    """Describe what a report asks for, line by line; nothing is started or written.

    Args:
        report: with its device decided.
        configfile: its file, for what would be refused.
    """
    plans = Plans(report)
    searches = [plan for path, plan in plans.searches.items() if not _is_of(path, plan)]
    to_come = [plan.run for plan in plans.runs.values() if not _is_of(plan.run.record, plan)]
    ended = len(plans.runs) - len(to_come)
    devices = dict.fromkeys(map(report.device_of, report.suites))
    yield (
        f"{report.title}: {count(len(plans.runs), 'run')} on {' and '.join(devices)}"
        f"{f', {ended} of which have ended' if ended else ''}"
    )
    if to_come:
        suites = {suite.name: suite for suite in report.suites}
        named = [(run.suite, run.entry, run.topology) for run in to_come]
        yield ""
        yield from table_of_runs(named, suites)
        yield ""
        yield "Most runs take a fraction of their time limits; one that fails is tried again."
    if searches:
        hours = sum(
            _hours(plan.run.topology, TIME_LIMITS * plan.aside.time_limit) for plan in searches
        )
        yield f"{count(len(searches), 'search')} for the largest batch: {_short(hours)} {AT_MOST}"
    trained = [*to_come, *(plan.run for plan in searches)]
    yield from _downloads(trained)
    yield from _room(report, trained)
    yield from _shared(report)
    yield from _unsupported(report)
    try:
        check_report(report, configfile)
    except ReperfError as fault:
        yield f"refused as it is: {fault}"


def needed_bytes(report: Report, built: dict[str, str | None]) -> int:
    """An estimate on the safe side: runs, environments and record files that are not there yet.

    Args:
        report: with its device decided.
        built: build -> SHA-256 of what it was made from; None: not made, or of another recipe.
    """
    runs = [(run, report.data_of(suite)) for suite in report.suites for run in report.runs(suite)]
    missing = [run for run, _ in runs if not run.record.exists()]
    read = [(run, data) for run, data in runs if run.input != "folder"]
    converted = {run.data: data for run, data in read if run.data and data}
    to_convert = [
        data for folder, data in converted.items() if not Path(folder, "manifest.json").exists()
    ]
    to_build = {
        build_of(run).folder: run.device for run, _ in runs if built[build_of(run).id] is None
    }
    return (
        len(missing) * LOG_BYTES
        + sum(data.of_kind.record_bytes() for data in to_convert)
        + sum(ENVIRONMENT_BYTES[device] for device in to_build.values())
        + sum(data.of_kind.embedded_bytes for data in report.data if data.is_embedded)
    )


def table_of_runs(
    runs: Collection[tuple[str, str, str]], suites: Mapping[str, Suite]
) -> Iterator[str]:
    """A line for each suite: its runs on each topology, and how long their devices may be taken.

    Args:
        runs: suite, entry and topology of each.
        suites: by name, in the order of the lines.
    """
    of_suites = {suite: [run for run in runs if run[0] == suite] for suite in suites}
    of_suites = {suite: found for suite, found in of_suites.items() if found} | {"all": [*runs]}
    topologies = sorted({topology for *_, topology in runs})
    topologies.sort(key=_devices)
    rows = [("suite", "systems", *topologies, "runs", AT_MOST)]
    for name, found in of_suites.items():
        times = Counter(topology for *_, topology in found)
        hours = sum(_hours(topology, suites[suite].time_limit) for suite, _, topology in found)
        numbers = (f"{times[topology]:,}" if times[topology] else "-" for topology in topologies)
        entries = {entry for _, entry, _ in found}
        rows.append((name, str(len(entries)), *numbers, f"{len(found):,}", _short(hours)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([name.ljust(widths[0]), *right])


def _devices(topology: str) -> int:
    return prod(topology_shape(topology))


def _hours(topology: str, seconds: float) -> float:
    """The device hours of a run that takes all of its time."""
    return _devices(topology) * seconds / 3600


def _short(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _is_of(record: Path | str, plan: RunPlan) -> bool:
    """Whether a record is there and names a plan; measuring checks the record itself."""
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        return bool(json.loads(Path(record).read_bytes())["plan"] == plan.digest)
    return False


def _downloads(runs: Iterable[Run]) -> Iterator[str]:
    """The builds that must be made or pulled first."""
    # Systems may have one in common.
    builds = {(build := build_of(run)).folder: (build, run.device) for run in runs}
    missing = [(build, device) for build, device in builds.values() if why_build(build)]
    for build, device in sorted(missing, key=lambda one: one[0].id):
        size = gibibytes(ENVIRONMENT_BYTES[device])
        yield f"to download: {_described(build)}, up to {size} once unpacked"


def _described(build: Build) -> str:
    if isinstance(build, ImageBuild):
        return f"image {build.container.image} for {build.system.id}"
    packages = build.lock.read_text(encoding="utf-8").count("==")
    return f"{count(packages, 'package')} of {build.lock.name} for {build.system.host.id}"


def _room(report: Report, runs: Sequence[Run]) -> Iterator[str]:
    """Estimates of disk and memory."""
    every = {build_of(run) for suite in report.suites for run in report.runs(suite)}
    needed = needed_bytes(report, {build.id: None if why_build(build) else "" for build in every})
    yield f"disk: up to {gibibytes(needed)} more; {gibibytes(disk_usage('.').free)} are free here"
    devices = max((run.devices_per_node for run in runs), default=0)
    if report.memory_limit and devices:
        most = gibibytes(devices * report.memory_limit)
        yield f"memory: up to {most} of a node, {gibibytes(report.memory_limit)} a process"
    elif report.cluster and report.cluster.memory_mb:
        yield f"memory: {gibibytes(report.cluster.memory_mb * 2**20)} of each node"


def _shared(report: Report) -> Iterator[str]:
    """Where devices share the CPUs of this machine."""
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
