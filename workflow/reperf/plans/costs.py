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
from reperf.plans.batch_search import TIME_LIMITS
from reperf.plans.checking import check_report
from reperf.plans.disk import ENVIRONMENT_BYTES, needed_bytes
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.printed import gibibytes
from reperf.text import count

AT_MOST = "device hours, at most"


def what_it_costs(report: Report, configfile: str) -> Iterator[str]:
    """The lines that tell what a report asks for, of which nothing is started or written.

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
        named = ((run.suite, run.entry, run.topology) for run in to_come)
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


def table_of_runs(
    runs: Iterable[tuple[str, str, str]], suites: Mapping[str, Suite]
) -> Iterator[str]:
    """A line for each suite: its runs on each topology, and how long their devices may be taken.

    Args:
        runs: suite, entry and topology of each.
        suites: by name, for their time limits.
    """
    runs = list(runs)
    topologies = sorted({one for *_, one in runs}, key=lambda one: (_devices(one), one))
    numbers: dict[str, Counter[str]] = defaultdict(Counter)
    entries = defaultdict(set)
    for suite, entry, topology in runs:
        numbers[suite][topology] += 1
        entries[suite].add(entry)
    hours = {
        suite: sum(n * _hours(one, suites[suite].time_limit) for one, n in found.items())
        for suite, found in numbers.items()
    }
    every = set().union(*entries.values())
    rows = [
        ("suite", "systems", *topologies, "runs", AT_MOST),
        *(
            _row(suite, entries[suite], found, topologies, hours[suite])
            for suite, found in sorted(numbers.items(), key=lambda one: [*suites].index(one[0]))
        ),
        _row("all", every, sum(numbers.values(), Counter()), topologies, sum(hours.values())),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([name.ljust(widths[0]), *right])


def _row(
    name: str,
    entries: Collection[str],
    found: Counter[str],
    topologies: Sequence[str],
    hours: float,
) -> tuple[str, ...]:
    numbers = (f"{found[one]:,}" if found[one] else "-" for one in topologies)
    return name, str(len(entries)), *numbers, f"{found.total():,}", _short(hours)


def _devices(topology: str) -> int:
    return prod(topology_shape(topology))


def _hours(topology: str, seconds: float) -> float:
    """The device hours of a run that takes all of its time."""
    return _devices(topology) * seconds / 3600


def _short(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _is_of(record: Path | str, plan: RunPlan) -> bool:
    """Whether a record is there and names a plan. Whether it can be trusted, measuring says."""
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        return bool(json.loads(Path(record).read_bytes())["plan"] == plan.digest)
    return False


def _downloads(runs: Iterable[Run]) -> Iterator[str]:
    """What is built or pulled first."""
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
    """Disk and memory, as far as anybody can say."""
    every = {build_of(run) for suite in report.suites for run in report.runs(suite)}
    needed = needed_bytes(report, {one.id: None if why_build(one) else "" for one in every})
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
    """What the report asks for and cannot have: the reasons, most cells first."""
    why: dict[str, list[Run]] = defaultdict(list)
    for suite in report.suites:
        for cell in report.cells(suite):
            if cell.unsupported:
                why[cell.unsupported].append(cell.runs[0])
    for reason, runs in sorted(why.items(), key=lambda item: -len(item[1])):
        systems = ", ".join(dict.fromkeys(run.system for run in runs))
        yield f"unsupported: {count(len(runs), 'cell')} of {systems}: {reason}"
