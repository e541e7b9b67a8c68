"""What in an archive follows from the rest of it: worked out again and compared.

The manifest tells a changed byte. These checks tell an archive whose parts somebody has changed to
fit each other: they refuse it, and name both values.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from reperf.archive.contents import CELL_LIST, files_of_suite, files_of_systems
from reperf.archive.difference import difference
from reperf.archive.names import CELLS, CONFIG, METADATA, PAGE, README, REPERF
from reperf.archive.run_checks import check_run
from reperf.builds import LockBuild, build_of, forget_builds
from reperf.config import Cell, Report, Run
from reperf.config.known_hardware import Hardware
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.layout import PLAN
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.systems import BuildKind, LockName
from reperf.training.record import RunRecord

NEWEST = RunRecord.model_fields["record_version"].default
RESULTS = "results"
"""Where all that runs left lies, in archives of every version."""


def hardware_in(cells: Iterable[Cell]) -> Hardware:
    """What the GPUs decided, as the cells of an archive without a word about it show it."""
    locks: dict[str, LockName] = {}
    unfit: dict[str, dict[BuildKind, str]] = {}
    way: BuildKind
    for run, why in ((run, cell.unsupported) for cell in cells for run in cell.runs[:1]):
        if why:
            way = "image" if run.container else "lock"
            unfit.setdefault(run.system, {})[way] = why
        if run.lock:
            locks[run.system] = run.lock
    return Hardware(locks=locks, unfit=unfit)


def check_cells(report: Report, cells: tuple[Cell, ...]) -> None:
    """Refuse cells that the configuration does not ask for, or asks for otherwise.

    Raises:
        ReperfError: names the first value that differs, and what it should be.
    """
    planned = tuple(report.cells(report.suites[0]))
    held, due = (CELL_LIST.dump_python(some, mode="json") for some in (cells, planned))
    if fault := difference(held, due):
        raise ReperfError(f"{CELLS}: {fault}, as {CONFIG} asks")


def check_records(
    report: Report,
    runs: list[Run],
    names: Iterable[str],
    graph: Any,  # noqa: ANN401
) -> None:
    """Refuse what does not follow from the run records of an archive.

    It is unpacked, into the working folder.

    Args:
        report: its configuration.
        runs: the ones that it asks for, with known batch sizes.
        names: of all members but the manifest.
        graph: its metadata.

    Raises:
        ReperfError: one line with the place and both values.
    """
    from reperf.archive.crate import describe  # noqa: PLC0415 - a quarter of a second

    forget_builds()  # the folder may have held another archive
    members = {*names} - {METADATA}
    records = [_record_of(run) for run in runs]
    asked = Plans(report).runs
    try:
        for record in records:
            _check_trainer(record, members)
            if record.record_version == NEWEST:
                plan = RunPlan.read(record.run.folder / PLAN)
                build = build_of(record.run, Path.cwd())
                check_run(record, plan, asked[str(record.run.folder)], build)
        _check_members(report, runs, records, members)
        due = describe(report, members, records)
    except (KeyError, OSError) as missing:
        name = missing.filename if isinstance(missing, OSError) else missing.args[0]
        raise ReperfError(f"{name} is not in it; its runs need it") from None
    if fault := difference(_of_any_version(graph), _of_any_version(due)):
        raise ReperfError(f"{METADATA}: {fault}, as the other members say")


def _record_of(run: Run) -> RunRecord:
    record = RunRecord.read(run.record)
    if why := record.why_not_of(run):
        raise ReperfError(f"{run.record}: {why}")
    found = record.largest
    if run.batch_multiple and (found is None or found.batch_size != run.batch_size):
        size = found and found.batch_size
        raise ReperfError(f"{run.record}: batch_size: got {run.batch_size}; allowed: {size}")
    if record.record_version == NEWEST:
        plan = RunPlan.read(run.folder / PLAN)
        held = {"plan": record.plan, "run": run.model_dump(mode="json")}
        asked = plan.with_batch(run.samples_per_device) if plan.batch else plan
        if fault := difference(
            held, {"plan": plan.digest, "run": asked.run.model_dump(mode="json")}
        ):
            raise ReperfError(f"{run.record}: {fault}, as {PLAN} beside it has it")
    elif record.plan in _digests_of(run.folder / PLAN):
        wrong = f"record_version: got {record.record_version}; allowed: {NEWEST}"
        raise ReperfError(f"{run.record}: {wrong}, as the digest of {PLAN} beside it shows")
    return record


def _digests_of(plan: Path) -> set[str]:
    """The digest that a plan has today; none if it is missing, or one of an earlier version."""
    with suppress(ReperfError):
        return {RunPlan.read(plan).digest}
    return set()


def _check_trainer(record: RunRecord, members: set[str]) -> None:
    """Check that the archived lock and trainer are those of a run.

    Trainers of earlier versions had digests of other things.
    """
    environment, run, root = record.environment, record.run, Path.cwd()
    held: dict[str, Any] = {"lock_sha256": environment.lock_sha256}
    if environment.lock and environment.lock not in members:
        raise KeyError(environment.lock)
    due: dict[str, Any] = {"lock_sha256": sha256(environment.lock) if environment.lock else ""}
    if record.record_version == NEWEST:
        build = build_of(run, root)
        lock = build.lock.relative_to(root).as_posix() if isinstance(build, LockBuild) else ""
        plan, system = RunPlan.read(run.folder / PLAN), build.system
        held |= {"lock": environment.lock, "trainer": record.trainer}
        held |= {"launch": [*plan.launch], "serve": [*plan.serve]}
        due |= {"lock": lock, "trainer": _digest_of_trainer(run, root)}
        due |= {"launch": [*system.launch], "serve": [*system.serve]}
    if fault := difference(held, due):
        raise ReperfError(f"{run.record}: {fault}, as the archived trainers and locks have it")


def _digest_of_trainer(run: Run, root: Path) -> str:
    try:
        return build_of(run, root).system.code_digest(run.workload)
    except UnicodeDecodeError as error:
        raise ReperfError(f"{run.record}: the archived trainer is not text: {error}") from None


def _check_members(
    report: Report, runs: list[Run], records: list[RunRecord], members: set[str]
) -> None:
    """Check that the members are those that such an archive has."""
    suite = report.suites[0]
    known = files_of_suite(suite, runs, records).keys() | {CONFIG, CELLS, README, PAGE}
    if all(record.record_version == NEWEST for record in records):
        known |= files_of_systems(runs, Path.cwd()).keys()
    else:  # earlier versions had other files
        members = {name for name in members if name.startswith(f"{RESULTS}/")}
    for name in sorted(members - known):
        raise ReperfError(f"{name}: belongs to no run or log that {CONFIG} asks for")


def _of_any_version(graph: Any) -> Any:  # noqa: ANN401
    """Metadata without the versions of reperf and of its libraries."""
    match graph:
        case {"@graph": [*entities]}:
            return graph | {"@graph": [_without_versions(entity) for entity in entities]}
    return graph


def _without_versions(entity: Any) -> Any:  # noqa: ANN401
    match entity:
        case {"@id": str(name), "version": str(), "softwareRequirements": [*needed]}:
            if name == REPERF:
                libraries = [str(library).split(" ")[0] for library in needed]
                return entity | {"version": "any", "softwareRequirements": libraries}
    return entity
