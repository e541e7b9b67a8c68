"""`reperf systems`: which system trains what, in which precision, and which builds are here."""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, get_args

from reperf import machine
from reperf.builds import Build, ImageBuild, LockBuild, why_build
from reperf.builds.engines import engine_here
from reperf.builds.fitness import why_not_computed, why_unfit
from reperf.config import Container
from reperf.config.site import ENGINES
from reperf.errors import ReperfError
from reperf.host import Host
from reperf.suggestions import allowed
from reperf.systems import Device, Needs, Precision, System, load_systems
from reperf.systems.gpu_rules import ARCHITECTURE
from reperf.systems.workloads import load_workloads
from reperf.terminal import table_lines, width_here
from reperf.text import printable

HEADINGS = ("system", "trains", "on CPUs", "on GPUs", "builds")


class _Build(NamedTuple):
    """One way in which a system gets its framework."""

    name: str  # such as "cuda lock" or "image"
    devices: tuple[Device, ...]
    architectures: Sequence[str]
    """The capabilities that its GPU code is compiled for; empty if no source lists them."""
    driver: str | None
    made: bool
    why_not: str | None  # why it does not run on this machine's GPUs


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "List the systems: the workloads that each trains, the precisions in which this machine's "
        "CPU and GPUs can train them, the GPUs and the driver that its builds need, and which of "
        "these builds this folder has."
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a workload: what trains it; or a system"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a table, or a JSON object."""
    wanted, names = options.name, [*load_workloads(), *load_systems()]
    if wanted is not None and wanted not in names:
        raise ReperfError(f"{wanted}: no workload and no system; {allowed(wanted, names)}")
    systems = [
        system
        for system in load_systems().values()
        if wanted in (None, system.id) or system.trains(wanted)
    ]
    host = machine.describe_host()
    if options.json:
        print(json.dumps({one.id: _object(one, host) for one in systems}, indent=2))
    else:
        _show([row for one in systems for row in _rows(one, host, wanted)], host)
    return 0


def _show(rows: Sequence[Sequence[str]], host: Host) -> None:
    print(*table_lines(HEADINGS, HEADINGS, rows, width=width_here()), sep="\n")
    gpus = ", ".join(dict.fromkeys(f"{gpu.name} ({gpu.capability})" for gpu in host.gpus))
    print("GPUs by compute capability; -: in no precision")
    print(printable(f"this machine: {host.cpu}; GPUs: {gpus or 'none'}"))


def _rows(system: System, host: Host, wanted: str | None) -> Iterator[tuple[str, ...]]:
    """A row for each set of precisions, whose workloads share it, and for each build."""
    by_precision: dict[tuple[str, ...], list[str]] = {}
    for workload in filter(system.trains, system.workloads):
        if wanted in (None, workload, system.id):
            precisions = _precisions(system, workload, host)
            shown = tuple(" ".join(precisions[device]) or "-" for device in precisions)
            by_precision.setdefault(shown, []).append(workload)
    trains = [(system.id, ", ".join(names), *shown) for shown, names in by_precision.items()]
    builds = map(_described, _builds(system, host))
    for row, build in zip_longest(trains, builds, fillvalue=""):
        yield *(row or ("",) * 4), build


def _described(build: _Build) -> str:
    """A build in a line, such as "cuda lock: not built; GPUs 7.5 to 12.0, driver 580.65.06"."""
    line = f"{build.name}: {build.why_not or ('built' if build.made else 'not built')}"
    if "cuda" not in build.devices or build.why_not:
        return line
    capabilities = sorted(
        (int(found[2]), int(found[3]), found[1] == "compute")
        for text in build.architectures
        if (found := re.fullmatch(ARCHITECTURE, text))
    )
    gpus = "no source says for which GPUs"
    if capabilities:
        (low, below, _), (high, above, by_ptx) = capabilities[0], capabilities[-1]
        gpus = f"GPUs {low}.{below} {'and later' if by_ptx else f'to {high}.{above}'}"
    return f"{line}; {gpus}" + (f", driver {build.driver}" if build.driver else "")


def _precisions(system: System, workload: str, host: Host) -> dict[Device, list[Precision]]:
    """In which precisions this machine can train, by device; on unknown GPUs in all of them."""

    def lacks(precision: Precision, device: Device) -> str | None:
        if device == "cuda":
            return why_not_computed(precision, [host])
        return system.why_not_on_processor(precision, machine.cpu_flags())

    return {
        device: [
            precision
            for precision in system.precisions_of(workload, device)
            if not lacks(precision, device)
        ]
        for device in get_args(Device)
    }


def _builds(system: System, host: Host) -> Iterator[_Build]:
    """The builds of a system, those for CPUs first."""
    for name in system.host.locks:
        build = LockBuild(system, name)
        if "lock" in system.ways(build.device) and system.precisions.get(build.device):
            needs = build.settings
            yield _build(f"{name} lock", build, (build.device,), needs, host)
    if image := system.image:
        container = Container(engine=engine_here() or ENGINES[0], image=image.reference)
        if devices := tuple(one for one in get_args(Device) if "image" in system.ways(one)):
            yield _build("image", ImageBuild(system, container), devices, image, host)


def _build(
    name: str, build: Build, devices: tuple[Device, ...], needs: Needs, host: Host
) -> _Build:
    unfit = why_unfit(build, [host]) if "cuda" in devices and host.gpus else None
    return _Build(name, devices, needs.architectures, needs.driver, not why_build(build), unfit)


def _object(system: System, host: Host) -> dict[str, Any]:
    return {
        "title": system.title,
        "workloads": {
            workload: _precisions(system, workload, host)
            for workload in filter(system.trains, system.workloads)
        },
        "builds": [build._asdict() for build in _builds(system, host)],
    }
