"""The archive of a small suite, and copies of it that somebody has changed."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reperf.archive.container import Member, verified, write
from reperf.archive.contents import write_archive
from reperf.builds import build_of
from reperf.config import Report, load_report
from reperf.drawing import figures
from reperf.files import sha256
from reperf.host import Environment
from reperf.layout import FIGURES, tables_of
from reperf.machine import describe_host
from reperf.measuring.recheck import measured_tables
from reperf.member_names import MANIFEST
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan

from tests.helpers.runs import record_of
from tests.helpers.step_logs import step_log

GPUS_ONLY = {"system": "ngc-tensorflow1", "variants": "xla"}  # what no CPU can train
RUNS = "results/runs/resnet50/pytorch"
RUN = f"{RUNS}/1n1g/1"  # the slowest of its cell


def report_of(entries: Sequence[Any] = ("pytorch", GPUS_ONLY), **changes: Any) -> Report:
    """A report of one suite; of the changes, batch_size and from are the suite's."""
    suite = {"name": "resnet50", "workload": "resnet50", "precision": "fp32", "batch_size": 8}
    suite |= {name: changes.pop(name) for name in ("batch_size", "from") if name in changes}
    asked = {"title": "two repeats", "topologies": ["1n1g", "1n2g"], "repeats": 2, "device": "cpu"}
    suites = [suite | {"systems": list(entries)}]
    return load_report(asked | changes | {"suites": suites}).alone("resnet50")


def leave_run(plan: RunPlan, status: str = "ok") -> None:
    """Leave a run's plan, log and record in the working folder."""
    run = plan.run
    build = build_of(run)
    rate = 50.0 * run.world_size**0.9 * (1 + run.repeat / 100)
    lines = step_log(batch=run.global_batch, world=run.world_size, rate=rate)
    run.folder.mkdir(parents=True)
    (run.folder / "plan.json").write_text(plan.text)
    log = run.folder / "train.log"
    log.write_text("\n".join(lines if status == "ok" else lines[:8]) + "\n")
    packages = {"lock_sha256": sha256(build.lock), "python": "3.11.7", "packages": {"numpy": "2"}}
    record_of(
        run,
        status=status,
        reason="" if status == "ok" else "no end after 1800 s",
        command=("python", *plan.launch, *plan.program),
        variables=plan.variables,
        environment=Environment(lock=build.lock_name, **packages),
        trainer=plan.trainer,
        plan=plan.digest,
        host=describe_host(),
        started=f"2026-01-02T03:0{3 + run.repeat}:05.000+00:00",
        ended=f"2026-01-02T03:0{4 + run.repeat}:05.000+00:00",
        seconds=60.0 * run.repeat,
        nodes=("node1",),
        log_sha256=sha256(log),
    ).write(run.folder / "run.json")
    shutil.copytree(run.folder, run.folder / "tries/1")


def archive_suite(report: Report, path: Path = Path("a.zip")) -> Path:
    """The archive of a suite, whose files are left in the working folder as the workflow does."""
    (suite,) = report.suites
    for plan in Plans(report).runs.values():
        ended = (plan.run.topology, plan.run.repeat)
        leave_run(plan, "timeout" if ended == ("1n2g", 2) else "ok")
    for table, text in measured_tables(suite, tuple(report.cells(suite))).items():
        Path(table).parent.mkdir(parents=True, exist_ok=True)
        Path(table).write_text(text)
    figures.draw_suite(*tables_of(suite.name), FIGURES.format(suite=suite.name))
    write_archive(report, report.runs(suite), path)
    return path


def archive(path: Path, contents: dict[str, bytes]) -> Path:
    write(path, [Member.of_bytes(name, content) for name, content in contents.items()])
    return path


def contents_of(path: Path) -> dict[str, bytes]:
    """All members of an archive but its manifest."""
    with verified(path) as opened:
        return {name: opened.read(name) for name in opened.namelist() if name != MANIFEST}


Change = Callable[[bytes], bytes]


def swap(old: str, new: str) -> Change:
    """Writes other words in the place of some."""

    def change(content: bytes) -> bytes:
        assert old.encode() in content
        return content.replace(old.encode(), new.encode())

    return change


def in_json(edit: Callable[[Any], object]) -> Change:
    """Edits what a JSON file holds."""

    def change(content: bytes) -> bytes:
        value = json.loads(content)
        edit(value)
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()

    return change


def rewritten(path: Path, changes: dict[str, Change | bytes | None]) -> Path:
    """A copy whose manifest fits, with some members changed or, by None, left out."""
    contents = contents_of(path)
    for name, change in changes.items():
        contents[name] = change(contents[name]) if callable(change) else change
    kept = {name: content for name, content in contents.items() if content is not None}
    return archive(path.with_name("rewritten.zip"), kept)
